import { expect, test } from 'vitest';
import { classesOf } from '../../src/logic/ranks/classes';
import { MANY, nextHues, NO_HUES } from '../../src/logic/ranks/hues';
import { neighbour, outlier, scopeEntries, scopeText, toggled, unionOf } from '../../src/logic/ranks/scopes';
import { row, running } from './row';

const rows = [
  ...Array.from({ length: 6 }, (_, rank) => row(rank)),
  row(6, { line: 8 }),
  running(7),
];
const named = [{ name: 'slow', ranks: '0,6-7' }];
const hues = nextHues(NO_HUES, classesOf(rows), ['slow']);
const entries = scopeEntries(rows, named, hues);
const [all, most, one, slow] = entries;
if (!all || !most || !one || !slow) throw new Error('too few');

test('all ranks, the classes by their hue, and the named sets', () => {
  expect(entries.map(({ label, set, ranks, hue }) => [label, set, ranks.length, hue])).toEqual([
    ['All', 'all', 8, undefined],
    ['train.py:41', '0-5', 6, 1],
    ['train.py:8', '6', 1, 2],
    ['@slow', '@slow', 3, 4],
  ]);
});

test('choosing what is in force ends it', () => {
  expect(toggled('auto', slow)).toBe('@slow');
  expect(toggled('@slow', slow)).toBe('auto');
});

test('several choices are their union, and all of them with All', () => {
  expect(unionOf([one, slow])).toBe('6 | @slow');
  expect(unionOf([one, all])).toBe('all');
});

test('the status bar says what a step moves, in its hue', () => {
  expect(scopeText('auto', entries)).toMatchObject({ text: 'scope: auto', hue: undefined });
  expect(scopeText('@slow', entries)).toMatchObject({ text: 'F10 → @slow (3)', hue: 4 });
  expect(scopeText('6', entries)).toMatchObject({ text: 'F10 → train.py:8 (1)', hue: 2 });
  expect(scopeText('6 | @slow', entries)).toMatchObject({ text: 'F10 → train.py:8 + @slow (3)', hue: MANY });
  expect(scopeText('ranks(tp=0)', entries)).toMatchObject({ text: 'F10 → ranks(tp=0)', hue: MANY });
  expect(scopeText('0-5', entries).detail).toBe('Continue, pause and steps apply to 6 ranks: 0-5');
});

test('a set of ranks is named by itself once they stand apart', () => {
  const moved = rows.map((each) => (each.rank === 3 ? row(3, { line: 42 }) : each));
  expect(scopeText('0-5', scopeEntries(moved, named, hues)).text).toBe('F10 → 0-5');
});

test('with several groups a choice names the group', () => {
  const two = [row(0, { group: 'trainer' }), row(0, { group: 'eval' })];
  const found = scopeEntries(two, [], nextHues(NO_HUES, classesOf(two), []));
  expect(found.map(({ label, set }) => [label, set])).toEqual([
    ['All', 'all'],
    ['train.py:41 @trainer', 'trainer:0'],
    ['train.py:41 @eval', 'eval:0'],
  ]);
});

test('the next stopped class and the one before, round and round', () => {
  expect(neighbour(rows, hues, 1, 1)?.rank).toBe(6);
  expect(neighbour(rows, hues, 7, 1)?.rank).toBe(0);
  expect(neighbour(rows, hues, 1, -1)?.rank).toBe(6);
  expect(neighbour(rows, hues, undefined, 1)?.rank).toBe(0);
  expect(neighbour([running(0)], hues, 1, 1)).toBeUndefined();
});

test('the outlier is of the smallest class, or at an exception', () => {
  expect(outlier(rows)?.rank).toBe(6);
  const failed = [0, 1].map((rank) => row(rank, { reason: 'exception', line: 50 }));
  expect(outlier([...failed, ...rows.slice(2)])?.rank).toBe(0);
  expect(outlier([running(0)])).toBeUndefined();
});
