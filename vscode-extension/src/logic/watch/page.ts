/** The page of the Parallel Watch. All that comes from ranks is escaped. Pure. */

import { escaped } from '../compare/drawing';
import type { Content } from '../page';
import { countedRanks, type RankId } from '../ranks/sets';
import { chartSvg } from './chart';
import { focusValue, historyOf, pointsOf, sixDigits, valuesOf, type Having, type Watched } from './row';

export const PAGE: Content = {
  title: 'Parallel Watch',
  body: `<form id="add">
<label class="wide">Add an expression <input id="expression" type="text" spellcheck="false" autocomplete="off" required></label>
<label>Ranks <input id="ranks" type="text" spellcheck="false" autocomplete="off" placeholder="all"></label>
<button type="submit">Add</button>
<button type="button" id="export" class="second">Export as CSV…</button>
</form>
<p id="problem" role="alert" hidden></p>
<p id="state" role="status"></p>`,
};

/** The table; every element that does something has its row in `data-row`. */
export function tableOf(watched: readonly Watched[], focus: RankId | undefined): string {
  if (watched.length === 0) return '<p class="none">No expression yet: add one above, or from the menu of a variable.</p>';
  const head = ['Expression', focus ? `Rank ${focus.rank}` : 'This rank', 'Values', 'Across ranks', 'Last stops', ''];
  const cells = head.map((name) => (name ? `<th scope="col" role="columnheader">${name}</th>` : '<td role="cell"></td>')).join('');
  const rows = watched.map((one, index) => row(one, index, focus)).join('');
  return `<table id="watched" role="table"><caption class="spoken">Expressions in all ranks, outliers first</caption><thead><tr role="row">${cells}</tr></thead><tbody>${rows}</tbody></table>`;
}

function row({ expression, body, problem, changed }: Watched, index: number, focus: RankId | undefined): string {
  const remove = `<button type="button" class="remove" data-row="${index}" aria-label="Remove ${escaped(expression)}" title="Remove">✕</button>`;
  const name = `<th scope="row" role="rowheader"><button type="button" class="detail" data-row="${index}" title="Compare ${escaped(expression)} in detail">${escaped(expression)}</button></th>`;
  const end = `<td role="cell" class="end">${remove}</td></tr>`;
  if (!body) return `<tr role="row" class="error">${name}<td role="cell" class="values" colspan="4">${escaped(problem || 'not evaluated yet')}</td>${end}`;
  const own = focusValue(body, focus);
  const inDigits = sixDigits(body.values.map(({ value }) => value));
  const mark = changed ? ' class="changed"' : '';
  const spoken = changed ? '<span class="spoken">changed: </span>' : '';
  const points = pointsOf(body);
  const across = chartSvg({ points, about: `Values of ${countedRanks(points.length)}`, clips: true });
  const past = historyOf(body);
  const before = chartSvg({ points: past, about: `Values at the last ${past.length} stops`, clips: false });
  const values = valuesOf(body).map((one, at) => having(one, index, at)).join('');
  return (
    `<tr role="row">${name}<td role="cell" class="own"><span${mark}>${spoken}${escaped(own === undefined ? '—' : inDigits(own))}</span></td>` +
    `<td role="cell" class="values">${values}</td><td role="cell">${across}</td><td role="cell">${before}</td>${end}`
  );
}

/** A click leads to the first of these ranks. */
function having({ set, value, ids, outlier, kind }: Having, row: number, at: number): string {
  const target = `Go to rank ${ids[0]?.rank ?? ''}`;
  const name = `${outlier ? '⚠ ' : ''}{${set}}`;
  const spoken = `${outlier ? 'outlier, ' : ''}${set}: ${value}. ${target}`;
  const look = kind === 'value' ? (outlier ? 'far' : '') : 'failed';
  return (
    `<div class="${look}"><button type="button" class="go" data-row="${row}" data-at="${at}" aria-label="${escaped(spoken)}" ` +
    `title="${target}">${escaped(name)}</button> ${escaped(value)}</div>`
  );
}
