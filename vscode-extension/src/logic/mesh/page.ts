/** The page with the picture of the mesh. All that comes from ranks is escaped. Pure. */

import { escaped } from '../compare/drawing';
import type { Content } from '../page';
import { nameOf, placeOf } from '../ranks/labels';
import { keyOf, severalGroups, type Row } from '../ranks/rows';
import type { Layout, Line } from './layout';
import type { Look, Painting } from './paint';
import type { Waiting } from './waits';

export const PAGE: Content = {
  title: 'Mesh',
  body: `<form id="choose">
<label>Colour <select id="colour"><option value="class">Location</option><option value="state">State</option><option value="value">Value</option></select></label>
<label class="wide" id="of" hidden>of the expression <input id="expression" type="text" spellcheck="false" autocomplete="off"></label>
<label id="along">Columns <select id="columns"></select></label>
<button type="button" id="why" class="second">Who Waits for Whom?</button>
</form>
<p id="problem" role="alert" hidden></p>
<div id="actions" role="group" aria-label="The selected ranks">
<span id="selected" role="status">Drag over ranks, or hold Shift and press arrow keys, to select them.</span>
<button type="button" data-action="scope" disabled>Set Scope</button>
<button type="button" data-action="name" disabled>New Group…</button>
<button type="button" data-action="cast" disabled>Cast…</button>
</div>`,
};

export interface View {
  readonly layout: Layout;
  readonly painting: Painting;
  readonly waiting: Waiting;
}

/** The grid is a table with headers, so a screen reader reads it as one. */
export function gridOf(view: View): string {
  const { layout, painting, waiting } = view;
  if (layout.lines.length === 0) return '<p class="none">No session is running.</p>';
  const none = layout.columns === '' ? '<p class="none">No mesh of two or more dimensions is known, so ranks are in the order of their numbers. <code>--mesh dp=2,tp=4</code> tells one.</p>' : '';
  const flat = layout.lines.length > 16; // what is in a line is beside each other then
  const size = layout.width > 32 ? 'dots' : flat ? 'flat' : layout.width > 12 ? 'small' : 'large';
  const head = Array.from({ length: layout.width }, (_, index) => `<th scope="col">${index}</th>`);
  const rows = layout.lines.flatMap(({ cells }) => cells.filter((row) => row !== undefined));
  const several = severalGroups(rows);
  const lines = layout.lines.map((line, index) => lineOf(line, index, view, several)).join('');
  const sentences = waiting.sentences.map((text) => `<li>${escaped(text)}</li>`).join('');
  const waits = waiting.heading === '' ? '' : `<p>${escaped(waiting.heading)}</p><ul id="waits">${sentences}</ul>`;
  return (
    `${none}${waits}<ul id="legend" aria-label="Colours">${painting.legend.map(entry).join('')}</ul>` +
    `<div id="picture" class="${size}"><table id="mesh" role="grid" aria-multiselectable="true"><caption class="spoken">Ranks by their place in the mesh</caption>` +
    `<thead><tr><td>${escaped(layout.columns)}</td>${layout.columns === '' ? '' : head.join('')}</tr></thead><tbody>${lines}</tbody></table></div>`
  );
}

function entry({ tint, mark, spoken }: Look): string {
  return `<li>${tint === 'plain' ? '' : `<span class="cell ${tint}">${escaped(mark)}</span> `}${escaped(spoken)}</li>`;
}

function lineOf({ name, first, cells }: Line, index: number, view: View, several: boolean): string {
  const inside = cells.map((row, column) => {
    const at = `data-line="${index}" data-column="${column}" role="gridcell" tabindex="-1"`;
    return row ? cellOf(row, at, view, several) : `<td class="cell empty" ${at} aria-label="no rank"></td>`;
  });
  return `<tr${first && index > 0 ? ' class="first"' : ''}><th scope="row">${escaped(name)}</th>${inside.join('')}</tr>`;
}

function cellOf(row: Row, at: string, { painting, waiting }: View, several: boolean): string {
  const { tint, mark, spoken } = painting.lookOf(row);
  const id = keyOf(row);
  const waitsFor = waiting.awaitedBy.get(id);
  const role = waiting.awaited.has(id) ? ' awaited' : waitsFor === undefined ? '' : ' waits';
  const place = placeOf(row);
  const words = [nameOf(row, several), row.state, place, spoken === place || spoken === row.state ? '' : spoken];
  const label = [...words, waitsFor === undefined ? '' : `waits for ${waitsFor}`].filter(Boolean).join(', ');
  return (
    `<td class="cell ${tint}${role}" ${at} data-id="${escaped(id)}" data-group="${escaped(row.group)}" data-rank="${row.rank}" ` +
    `aria-selected="false" aria-label="${escaped(label)}" title="${escaped(label)}"><b>${row.rank}</b><span>${escaped(mark)}</span></td>`
  );
}
