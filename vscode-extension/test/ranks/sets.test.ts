import { expect, test } from 'vitest';
import { callOf, foldNumbers, setOf, unfold, whichRanks } from '../../src/logic/ranks/sets';

const of = (numbers: number[], group = 'job'): { group: string; rank: number }[] =>
  numbers.map((rank) => ({ group, rank }));

test.each([
  [[], ''],
  [[3], '3'],
  [[1, 0], '0-1'],
  [[7, 0, 1, 2, 3, 3], '0-3,7'],
])('%j folds to %s', (numbers, text) => {
  expect(foldNumbers(numbers)).toBe(text);
});

test('groups are named where the session has several', () => {
  const ids = [...of([0, 1, 2], 'trainer'), ...of([0], 'eval')];
  expect(setOf(ids, true)).toBe('eval:0 | trainer:0-2');
  expect(setOf(of([4, 5]), false)).toBe('4-5');
});

test.each([
  [[0, 1, 2, 3], 'ranks(0:4)'],
  [[3], 'ranks(3)'],
  [[1, 2], 'ranks(1:3)'],
  [[1, 3, 5, 7], 'ranks(1:8:2)'],
  [[1, 5], 'ranks(1,5)'],
  [[0, 1, 7], 'ranks(0,1,7)'],
])('%j is called %s', (numbers, text) => {
  expect(callOf(of(numbers), false)).toBe(text);
});

test('an answer unfolds, with one group and with several', () => {
  expect(unfold('0-3,7', 'job')).toEqual(of([0, 1, 2, 3, 7]));
  expect(unfold('trainer:0-1; eval:0', 'job')).toEqual([...of([0, 1], 'trainer'), ...of([0], 'eval')]);
  expect(unfold('', 'job')).toEqual([]);
});

test('one rank is no ranks', () => {
  expect([whichRanks('2'), whichRanks('0,2'), whichRanks('eval:0')]).toEqual(['rank 2', 'ranks 0,2', 'ranks eval:0']);
});

test('what unfolds folds back', () => {
  expect(setOf(unfold('0-3,7,9-10', 'job'), false)).toBe('0-3,7,9-10');
});
