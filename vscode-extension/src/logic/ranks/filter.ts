/** The search in the Ranks view. Pure. */

import type { Row } from './rows';
import { coordsOf, fileOf, nameOf } from './words';

const NUMBERS = /^\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*$/;

/**
 * The rows that fit every word of a search. A word is a set of numbers (`3`, `0-3,7`), or part of a
 * rank's state, place in the mesh (`tp=1`), host, function or file (`train.py:41`).
 */
export function search(rows: readonly Row[], text: string): readonly Row[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  const tests = words.map(testFor);
  return rows.filter((row) => tests.every((test) => test(row)));
}

function testFor(word: string): (row: Row) => boolean {
  if (!NUMBERS.test(word)) return (row) => textOf(row).includes(word);
  const ranges = word.split(',').map((piece) => piece.split('-').map(Number));
  return ({ rank }) => ranges.some(([first = 0, last = first]) => first <= rank && rank <= last);
}

function textOf(row: Row): string {
  const file = row.path === null ? '' : `${fileOf(row.path)}:${row.line ?? ''}`;
  const parts = [nameOf(row, true), row.state, row.reason, coordsOf(row), row.host, row.function, file];
  return parts.join('\n').toLowerCase();
}
