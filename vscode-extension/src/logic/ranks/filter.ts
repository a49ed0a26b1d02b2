/** The search in the Ranks view. Pure. */

import type { Row } from './rows';
import { coordsOf, fileOf, nameOf } from './labels';

const NUMBERS = /^\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*$/;

/**
 * The rows that match every term of a search. A term is a set of numbers (`3`, `0-3,7`), or part of a
 * rank's state, place in the mesh (`tp=1`), host, function or file (`train.py:41`).
 */
export function search(rows: readonly Row[], text: string): readonly Row[] {
  const terms = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (terms.length === 0) return rows;
  const tests = terms.map(testFor);
  return rows.filter((row) => tests.every((test) => test(row)));
}

function testFor(term: string): (row: Row) => boolean {
  if (!NUMBERS.test(term)) return (row) => textOf(row).includes(term);
  const ranges = term.split(',').map((piece) => piece.split('-').map(Number));
  return ({ rank }) => ranges.some(([first = 0, last = first]) => first <= rank && rank <= last);
}

function textOf(row: Row): string {
  const file = row.path === null ? '' : `${fileOf(row.path)}:${row.line ?? ''}`;
  const parts = [nameOf(row, true), row.state, row.reason, coordsOf(row), row.host, row.function, file];
  return parts.join('\n').toLowerCase();
}
