/** A comparison as CSV (RFC 4180), one line a rank. Pure. */

import { groupsOf, numberOf, type CompareBody } from './answer';

const HEAD = ['group', 'rank', 'value', 'note'];
/** A spreadsheet would run a text that begins so as a formula, and a rank's answer is not to be trusted. */
const FORMULA = /^[=+\-@\t\r]/;

export function csvOf(body: CompareBody, group: string): string {
  const lines = groupsOf(body).flatMap(({ ids, value, marks, kind }) => {
    const note = kind === 'value' ? marks.join(', ') : [...marks, value].join(': ');
    return ids.map((id) => [id.group || group, `${id.rank}`, kind === 'value' ? value : '', note]);
  });
  lines.sort(([one = '', first], [other = '', second]) =>
    one === other ? Number(first) - Number(second) : one < other ? -1 : 1,
  );
  return [HEAD, ...lines].map((line) => `${line.map(quoted).join(',')}\r\n`).join('');
}

function quoted(cell: string): string {
  const safe = FORMULA.test(cell) && numberOf(cell) === undefined ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** `compare-loss.csv`. */
export function fileName(expression: string): string {
  const word = expression.replace(/\W+/g, '-').replace(/^-|-$/g, '');
  return `compare-${word || 'ranks'}.csv`;
}
