/** The page of the array viewer. All that comes from ranks is escaped. Pure. */

import { short } from '../compare/answer';
import { escaped } from '../compare/drawing';
import type { Content } from '../page';
import { indexIn, oddest, type ArrayBody, type Block, type Cell, type Query } from './answer';

const BINS = 40;
const HEIGHT = 56;
const STEP = 8;

export const PAGE: Content = {
  title: 'Array',
  body: `<form id="ask">
<label class="wide">Tensor or array <input id="expression" type="text" spellcheck="false" autocomplete="off" required title="w, or w[$i, 3, $j], or w[$rank, $j]"></label>
<label>Ranks <input id="ranks" type="text" spellcheck="false" autocomplete="off" placeholder="focus"></label>
<button type="submit">Show</button>
</form>
<p id="problem" role="alert" hidden></p>
<div id="shown" hidden>
<p id="about" role="status"></p>
<ul id="notes"></ul>
<div class="row"><div id="axes" class="row"></div>
<label>Show <select id="show"><option value="max">max of each cell</option><option value="mean">mean of each cell</option><option value="nan">NaN in each cell</option></select></label>
<label class="check"><input type="checkbox" id="mask" checked> NaN mask</label></div>
<canvas id="map" tabindex="0" role="img" aria-describedby="cell"></canvas>
<p id="cell" role="status">&nbsp;</p>
<div id="legend" class="row"></div>
<div id="histogram"></div>
</div>`,
};

/** What it is: `DTensor bfloat16 cuda:0 [4096, 8192] · Shard(dim=1)`, and its numbers. */
export function aboutOf({ name, dtype, device, shape, placements, parts }: ArrayBody): string {
  const all = parts.map(({ statistics }) => statistics);
  const sum = (pick: (one: (typeof all)[number]) => number): number => all.reduce((total, one) => total + pick(one), 0);
  const ends = all.flatMap(({ min, max }) => (min === null || max === null ? [] : [min, max]));
  const count = sum((one) => one.count - one.nan);
  const mean = sum((one) => (one.mean ?? NaN) * (one.count - one.nan)) / count;
  const head = [name, dtype, device, `[${shape.join(', ')}]`].filter(Boolean).join(' ');
  const numbers = ends.length ? [`min ${short(Math.min(...ends))}`, `max ${short(Math.max(...ends))}`] : [];
  const known = Number.isFinite(mean) ? [`mean ${short(mean)}`] : [];
  return [head, ...(placements ? [placements] : []), ...numbers, ...known, `NaN ${sum((one) => one.nan)}`, `inf ${sum((one) => one.inf)}`].join(' · ');
}

/** What is not as one might think, as items of a list. */
export function notesOf({ parts, shapes, errors, missing, placements }: ArrayBody): string {
  const notes = errors.map(({ ranks, message }) => `{${ranks}} ${message}`);
  if (missing) notes.push(`{${missing}} did not answer in time`);
  if (shapes.length > 1) notes.push(...shapes.map(({ ranks, message }) => `{${ranks}} ${message}`));
  if (placements.includes('Partial')) notes.push('Each part is what its rank adds to the whole: the ranks have not been summed.');
  const late = parts.filter(({ complete }) => !complete).map(({ ranks }) => `{${ranks}}`);
  if (late.length) notes.push(`${late.join(' ')} took longer than it may: cells without a colour were not looked at.`);
  return notes.map((note) => `<li>${escaped(note)}</li>`).join('');
}

function options(choices: readonly (readonly [string, string])[], chosen: string): string {
  return choices.map(([value, text]) => `<option value="${value}"${value === chosen ? ' selected' : ''}>${text}</option>`).join('');
}

/** A choice of dimensions for rows and columns, and a slider for each of the others. */
export function axesOf({ shape, rows, columns }: ArrayBody, query: Query): string {
  const dimensions = shape.map((size, axis): [string, string] => [`${axis}`, `dimension ${axis} (${size})`]);
  const perRank: [string, string] = ['$rank', 'ranks ($rank)'];
  const choices = shape.length > 1 ? [...dimensions, perRank] : [['', 'one row'] as const, perRank];
  const sliders = shape.map((size, axis) => {
    if (axis === rows || axis === columns || shape.length < 2) return '';
    const value = indexIn(query, axis);
    return (
      `<label><span>Dimension ${axis}: <output>${value < 0 ? 'all' : value}</output></span>` +
      `<input type="range" data-axis="${axis}" min="-1" max="${size - 1}" value="${value}" aria-valuetext="${value < 0 ? 'all' : value}"></label>`
    );
  });
  return (
    `<label>Rows ($i) <select id="rows">${options(choices, rows === null ? '' : `${rows}`)}</select></label>` +
    `<label>Columns ($j) <select id="columns">${options(dimensions, `${columns}`)}</select></label>${sliders.join('')}`
  );
}

function span(begin: number, size: number): string {
  return size > 1 ? `${begin}–${begin + size - 1}` : `${begin}`;
}

/** The words for a cell: `rank 2 · rows 16–31 · columns 0–15 · max 3.2 · mean 0.01`. */
export function wordsOf(cell: Cell, { rows, parts }: ArrayBody): string {
  const whose = parts.length > 1 || rows === '$rank' ? [`{${cell.ranks}}`] : [];
  const row = rows === '$rank' ? [] : [`rows ${span(cell.row, cell.height)}`];
  const numbers = cell.max === cell.mean ? [short(cell.mean)] : [`max ${short(cell.max)}`, `mean ${short(cell.mean)}`];
  const nan = cell.nan ? [`NaN ${cell.nan}`] : [];
  return [...whose, ...row, `columns ${span(cell.column, cell.width)}`, ...(Number.isNaN(cell.mean) && nan.length ? [] : numbers), ...nan].join(' · ');
}

/** The cells that stand out, for reading and as links into the picture. */
export function tableOf(blocks: readonly Block[], { rows }: ArrayBody): string {
  const head = ['Cell', 'Ranks', 'Max', 'Mean', 'NaN'].map((name) => `<th scope="col">${name}</th>`).join('');
  const lines = oddest(blocks).map((cell) => {
    const name = `${rows === '$rank' ? `{${cell.ranks}}` : span(cell.row, cell.height)}, ${span(cell.column, cell.width)}`;
    const link = `<button type="button" class="go" data-row="${cell.row}" data-column="${cell.column}">${escaped(name)}</button>`;
    const values = [`{${cell.ranks}}`, short(cell.max), short(cell.mean), `${cell.nan}`].map((value) => `<td>${escaped(value)}</td>`);
    return `<tr><th scope="row">${link}</th>${values.join('')}</tr>`;
  });
  return `<table><caption>Cells that stand out: NaN first, then the largest</caption><thead><tr>${head}</tr></thead><tbody>${lines.join('')}</tbody></table>`;
}

/** The parts' histograms as one; the first and the last count are of what is below `low` and above `high`. */
export function histogramOf({ parts }: ArrayBody): { readonly low: number; readonly high: number; readonly counts: readonly number[] } {
  const known = parts.filter(({ ends }) => ends.length === 2);
  const low = Math.min(...known.map(({ ends: [begin = 0] }) => begin));
  const high = Math.max(...known.map(({ ends: [, end = 0] }) => end));
  const counts = new Array<number>(known.length ? BINS + 2 : 0).fill(0);
  for (const { histogram, statistics, ends: [begin = 0, end = 0] } of known) {
    const size = (end - begin) / (histogram.length - 2);
    histogram.forEach((count, index) => {
      const outside = index === 0 ? statistics.min : index === histogram.length - 1 ? statistics.max : null;
      const at = outside ?? begin + (index - 0.5) * size;
      const bin = at === high ? BINS : Math.floor(((at - low) / (high - low)) * BINS) + 1;
      const place = Math.min(BINS + 1, Math.max(0, bin));
      counts[place] = (counts[place] ?? 0) + count;
    });
  }
  return { low, high, counts };
}

/** Bars by the logarithm: one element is seen beside a million. What is far off is counted at the edge. */
export function histogramSvg(body: ArrayBody): string {
  const { low, high, counts } = histogramOf(body);
  if (counts.length === 0) return '';
  const most = Math.log1p(Math.max(...counts));
  const size = (high - low) / BINS;
  const least = Math.min(...body.parts.map(({ statistics }) => statistics.min ?? Infinity));
  const largest = Math.max(...body.parts.map(({ statistics }) => statistics.max ?? -Infinity));
  const bars = counts.map((count, index) => {
    if (count === 0) return '';
    const height = (HEIGHT * Math.log1p(count)) / most;
    const outside = index === 0 ? `from ${short(least)}, far below` : index > BINS ? `far above, to ${short(largest)}` : '';
    const told = `${outside || `${short(low + (index - 1) * size)} to ${short(low + index * size)}`}: ${count}`;
    return `<rect class="${outside ? 'far' : 'bar'}" x="${index * STEP}" y="${(HEIGHT - height).toFixed(1)}" width="${STEP - 1}" height="${height.toFixed(1)}"><title>${told}</title></rect>`;
  });
  const text = (x: number, y: number, anchor: string, words: string, kind = ''): string =>
    `<text${kind} x="${x}" y="${y}" text-anchor="${anchor}">${words}</text>`;
  const [right, base] = [(BINS + 1) * STEP, HEIGHT + 14];
  const [below = 0, above = 0] = [counts[0], counts[BINS + 1]];
  const far = [
    ...(below ? [text(STEP, -4, 'start', `${below} from ${short(least)}`, ' class="odd"')] : []),
    ...(above ? [text(right, -4, 'end', `${above} to ${short(largest)}`, ' class="odd"')] : []),
  ];
  const ends = text(STEP, base, 'start', short(low)) + text(right, base, 'end', short(high));
  const spoken = `Histogram from ${short(low)} to ${short(high)}${below ? `, ${below} below` : ''}${above ? `, ${above} above` : ''}`;
  return `<figure><figcaption>Histogram, by the logarithm of the count</figcaption><svg role="img" aria-label="${spoken}" viewBox="0 -16 ${right + STEP} ${HEIGHT + 32}">${bars.join('')}${far.join('')}${ends}</svg></figure>`;
}
