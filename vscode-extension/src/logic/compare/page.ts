/** The Compare view's HTML. All that comes from ranks is escaped. Pure. */

import { groupsOf, nameOfSet, numberOf, short, summaryOf, type Comparison, type Group, type Statistics } from './answer';
import { escaped, histogramSvg, sparklineSvg } from './drawing';
import type { Content } from '../page';
import { countedRanks } from '../ranks/sets';

export const PAGE: Content = {
  title: 'Compare across ranks',
  body: `<form id="ask">
<label class="wide">Expression <input id="expression" type="text" spellcheck="false" autocomplete="off" required></label>
<label>Ranks <input id="ranks" type="text" spellcheck="false" autocomplete="off" placeholder="all"></label>
<button type="submit">Compare</button>
</form>
<p id="problem" role="alert" hidden></p>
<div id="age" role="status" hidden><span id="words"></span> <button type="button" id="again">Compare Again</button></div>
<p id="summary" role="status"></p>
<div id="actions" role="toolbar" aria-label="What to do with the answer" hidden>
<button type="button" id="export">Export as CSV…</button>
<button type="button" id="group">Make group of outliers…</button>
</div>`,
};

export interface Shown {
  readonly summary: string;
  readonly html: string;
  readonly outliers: boolean;
}

/** The answer: statistics and drawings where there are numbers, then the table of value groups. */
export function shown({ body }: Comparison): Shown {
  const groups = groupsOf(body);
  const { statistics } = body;
  const numbers = statistics ? `<div id="numbers">${figures(statistics)}${drawings(statistics, groups)}</div>` : '';
  return { summary: summaryOf(body), html: numbers + table(groups), outliers: body.outliers !== '' };
}

function figures(statistics: Statistics): string {
  const { min, max, mean, std, nan, inf } = statistics;
  const rows: [string, string, boolean][] = [
    ['min', short(min), false],
    ['max', short(max), false],
    ['mean', short(mean), false],
    ['deviation', short(std), false],
    ['NaN', `${nan}`, nan > 0],
    ['infinite', `${inf}`, inf > 0],
  ];
  const cells = rows.map(
    ([name, value, odd]) => `<div${odd ? ' class="odd"' : ''}><dt>${name}</dt><dd>${escaped(value)}</dd></div>`,
  );
  return `<dl aria-label="Statistics of the finite numbers">${cells.join('')}</dl>`;
}

function drawings({ histogram }: Statistics, groups: readonly Group[]): string {
  const far = groups.filter(({ outlier }) => outlier).map(({ value }) => numberOf(value));
  const bars = histogram ? histogramSvg(histogram, far.filter((one) => one !== undefined)) : '';
  const drawn: [string, string][] = [
    ['How the values spread', bars],
    ['Rank by rank', sparklineSvg(groups)],
  ];
  return drawn
    .filter(([, svg]) => svg !== '')
    .map(([title, svg]) => `<figure><figcaption>${title}</figcaption>${svg}</figure>`)
    .join('');
}

function table(groups: readonly Group[]): string {
  const rows = groups.map((group, index) => row(group, index));
  return (
    '<table id="groups" role="grid" aria-label="Ranks by value, outliers first">' +
    '<thead><tr><th scope="col">Ranks</th><th scope="col" class="count">Count</th>' +
    `<th scope="col">Value</th><th scope="col">Note</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
  );
}

/** The link of a row leads to its rank. One link at a time takes the keyboard's focus: the script moves it. */
function row(group: Group, index: number): string {
  const { kind, outlier, ids, value, marks } = group;
  const note = marks.map((mark) => `<span class="mark">${escaped(mark)}</span>`).join(' ');
  return (
    `<tr role="row" class="${kind}${outlier ? ' far' : ''}">` +
    `<td role="gridcell" class="ranks">${link(group, index)}</td>` +
    `<td role="gridcell" class="count"><span title="${countedRanks(ids.length)}">${ids.length}</span></td>` +
    `<td role="gridcell" class="value">${escaped(value)}</td><td role="gridcell">${note}</td></tr>`
  );
}

function link(group: Group, index: number): string {
  const { ranks, ids, value, marks } = group;
  const target = ids.length === 1 ? `Go to rank ${ids[0]?.rank ?? ranks}` : `Go to rank ${ids[0]?.rank ?? ranks}, the first of these`;
  const spoken = `${ids.length === 1 ? 'rank' : 'ranks'} ${ranks}: ${[value, ...marks].join(', ')}. ${target}`;
  return (
    `<button type="button" class="go" tabindex="${index === 0 ? 0 : -1}" data-index="${index}" ` +
    `aria-label="${escaped(spoken)}" title="${escaped(target)}">${escaped(nameOfSet(group))}</button>`
  );
}
