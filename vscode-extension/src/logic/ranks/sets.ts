/** Rank sets as text (docs/rank-sets.md): folding, unfolding, and the spelling with `ranks(...)`. Pure. */

import { groupedBy } from '../grouped';
import { severalGroups, type Row } from './rows';

export interface RankId {
  readonly group: string;
  readonly rank: number;
}

/** `0-3,7` from numbers in any order. */
export function foldNumbers(numbers: Iterable<number>): string {
  return runs(numbers)
    .map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
    .join(',');
}

function runs(numbers: Iterable<number>): [number, number][] {
  const found: [number, number][] = [];
  for (const number of sorted(numbers)) {
    const last = found.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else found.push([number, number]);
  }
  return found;
}

function sorted(numbers: Iterable<number>): number[] {
  return [...new Set(numbers)].sort((one, other) => one - other);
}

function byGroup(ids: Iterable<RankId>): [string, number[]][] {
  const groups = [...groupedBy(ids, ({ group }) => group)].sort(([one], [other]) => (one < other ? -1 : 1));
  return groups.map(([group, members]) => [group, members.map(({ rank }) => rank)]);
}

/** A rank set for exactly these ranks; `named`: with their groups. */
export function setOf(ids: Iterable<RankId>, named: boolean): string {
  return byGroup(ids)
    .map(([group, numbers]) => (named ? `${group}:` : '') + foldNumbers(numbers))
    .join(' | ');
}

/** `ranks(0:4)`, `ranks(1:10:2)`, `ranks(3)`, `ranks(0,1,7)`: as a user would type it. */
export function callOf(ids: Iterable<RankId>, named: boolean): string {
  return byGroup(ids)
    .map(([group, numbers]) => `${named ? `${group}.` : ''}ranks(${inside(sorted(numbers))})`)
    .join(' | ');
}

function inside(numbers: readonly number[]): string {
  const [first = 0, second = first] = numbers;
  const last = numbers.at(-1) ?? first;
  const step = second - first;
  const even = numbers.every((number, index) => number === first + index * step);
  if (numbers.length < 3 && step !== 1) return numbers.join(',');
  if (!even) return numbers.join(',');
  return step === 1 ? `${first}:${last + 1}` : `${first}:${last + 1}:${step}`;
}

/** The ranks of a response: `0-3,7`, or with several groups `trainer:0-3; eval:0`. */
export function unfold(text: string, group: string): RankId[] {
  return text
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .flatMap((part) => {
      const colon = part.lastIndexOf(':');
      const name = colon < 0 ? group : part.slice(0, colon);
      return numbersOf(part.slice(colon + 1)).map((rank) => ({ group: name, rank }));
    });
}

function numbersOf(text: string): number[] {
  return text.split(',').flatMap((piece) => {
    const [first = NaN, last = first] = piece.split('-').map(Number);
    if (!Number.isInteger(first) || !Number.isInteger(last)) return [];
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
  });
}

/** The rank set of these rows for a request. `all`: the session's rows. */
export function setOfRows(rows: readonly Row[], all: readonly Row[]): string {
  return setOf(rows, severalGroups(all));
}

/** `rank 3`, `ranks 0-3,7`. */
export function whichRanks(set: string): string {
  return /^\d+$/.test(set) ? `rank ${set}` : `ranks ${set}`;
}

export function countedRanks(count: number): string {
  return count === 1 ? '1 rank' : `${count} ranks`;
}
