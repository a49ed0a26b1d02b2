/** Ranks that are in the same state at the same place. Pure. */

import { groupedBy } from '../grouped';
import { isDead } from './deaths';
import { STATES, type Row } from './rows';

/** `key` does not depend on the ranks, so a tree remembers which classes are expanded. */
export interface RankClass {
  readonly key: string;
  readonly group: string;
  readonly state: string;
  readonly dead: boolean;
  readonly exception: boolean;
  readonly path: string | null;
  readonly line: number | null;
  readonly function: string | null;
  readonly rows: readonly Row[];
}

export function classesOf(rows: readonly Row[]): RankClass[] {
  return [...groupedBy(rows, classKey)].map(([key, members]) => classFrom(key, members)).sort(byImportance);
}

/** The same for all ranks of a class, and for as long as these stay where they are. */
export function classKey(row: Row): string {
  return JSON.stringify([row.group, row.state, isDead(row), isException(row), row.path, row.line, row.function]);
}

export function isException(row: Row): boolean {
  return row.state === 'stopped' && row.reason === 'exception';
}

/** The state of a rank; of one that has died or is at an exception, this. */
export function conditionOf(row: Row): string {
  if (isDead(row)) return 'dead';
  return isException(row) ? 'exception' : row.state;
}

function classFrom(key: string, rows: readonly Row[]): RankClass {
  const [first] = rows;
  if (!first) throw new Error('a class has at least one rank');
  const { group, state, path, line } = first;
  const trouble = { dead: isDead(first), exception: isException(first) };
  return { key, group, state, ...trouble, path, line, function: first.function, rows };
}

/** Dead ranks first, then exceptions, then by state, stopped ranks first; then by size: what differs is seen without scrolling. */
function byImportance(one: RankClass, other: RankClass): number {
  return (
    urgencyOf(other) - urgencyOf(one) ||
    placeOf(one.state) - placeOf(other.state) ||
    one.rows.length - other.rows.length ||
    (one.rows[0]?.rank ?? 0) - (other.rows[0]?.rank ?? 0)
  );
}

function urgencyOf({ dead, exception }: RankClass): number {
  return dead ? 2 : Number(exception);
}

function placeOf(state: string): number {
  const place = (STATES as readonly string[]).indexOf(state);
  return place < 0 ? STATES.length : place;
}

/** The ranks of the same class as this one. */
export function classOf(row: Row, rows: readonly Row[]): readonly Row[] {
  const key = classKey(row);
  return rows.filter((other) => classKey(other) === key);
}

const MOST_UNBUNDLED = 64;
const BUNDLE = 32;

/** The ranks of a long list, in bundles: 0-31, 32-63 and so on; of a short one each by itself. */
export function bundlesOf(rows: readonly Row[]): (readonly Row[])[] {
  if (rows.length <= MOST_UNBUNDLED) return rows.map((row) => [row]);
  return [...groupedBy(rows, ({ rank }) => Math.floor(rank / BUNDLE)).values()];
}
