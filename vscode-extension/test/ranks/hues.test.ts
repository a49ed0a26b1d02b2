import { expect, test } from 'vitest';
import { bundlesOf, classesOf } from '../../src/logic/ranks/classes';
import { commonHue, groupMarks, hueOfRow, type Hues, MANY, nextHues, NO_HUES } from '../../src/logic/ranks/hues';
import { bundleLabels } from '../../src/logic/ranks/labels';
import type { Row } from '../../src/logic/ranks/rows';
import { row, running } from './row';

function huesOf(rows: readonly Row[], before: Hues = NO_HUES, names: readonly string[] = []): Hues {
  return nextHues(before, classesOf(rows), names);
}

test('the largest class has the first hue, an exception is red, and a running rank has none', () => {
  const rows = [row(0, { line: 8 }), row(1), row(2), row(3, { reason: 'exception', line: 50 }), running(4)];
  const hues = huesOf(rows);
  expect(rows.map((one) => hueOfRow(hues, one))).toEqual([2, 1, 1, 6, undefined]);
});

test('a class keeps its hue as long as it lives, also when larger ones come', () => {
  const first = huesOf([row(0), row(1)]);
  const later = [row(0), ...[1, 2, 3].map((rank) => row(rank, { line: 42 }))];
  const hues = huesOf(later, first);
  expect(later.map((one) => hueOfRow(hues, one))).toEqual([1, 2, 2, 2]);
});

test('ranks that step keep their hues, for nobody took these meanwhile', () => {
  const apart = [row(0), row(1), row(2, { line: 8 })];
  const before = huesOf(apart);
  const under_way = huesOf(apart.map(({ rank }) => running(rank)), before);
  const after = [row(0, { line: 42 }), row(1, { line: 42 }), row(2, { line: 9 })];
  const hues = huesOf(after, under_way);
  expect(after.map((one) => hueOfRow(hues, one))).toEqual([1, 1, 2]);
  const alone = huesOf(after.slice(2), under_way);
  expect(hueOfRow(alone, row(2, { line: 9 }))).toBe(2);
});

test('from the seventh class on all are many, until a hue is free', () => {
  const eight = Array.from({ length: 8 }, (_, rank) => row(rank, { line: rank }));
  const hues = huesOf(eight);
  expect(eight.map((one) => hueOfRow(hues, one))).toEqual([1, 2, 3, 4, 5, 6, MANY, MANY]);
  const left = huesOf(eight.slice(5), hues);
  expect(eight.slice(5).map((one) => hueOfRow(left, one))).toEqual([6, 1, 2]);
});

test('a named set has a hue of its own, from the other end', () => {
  expect(huesOf([row(0)], NO_HUES, ['slow']).of.get('@slow')).toBe(4);
});

test('ranks of several classes are many', () => {
  const rows = [row(0), row(1, { line: 8 }), running(2)];
  const hues = huesOf(rows);
  expect(commonHue(hues, rows)).toBe(MANY);
  expect(commonHue(hues, rows.slice(1))).toBe(hueOfRow(hues, row(1, { line: 8 })));
  expect(commonHue(hues, rows.slice(2))).toBeUndefined();
});

test('every line where ranks stand has a mark, once, in the hue of most ranks there', () => {
  const rows = [row(0), row(1), row(2, { function: 'other' }), row(3, { line: 8 }), running(4)];
  const hues = huesOf(rows);
  expect(groupMarks(hues, classesOf(rows))).toEqual([
    { path: '/src/train.py', line: 41, hue: hueOfRow(hues, row(0)) },
    { path: '/src/train.py', line: 8, hue: hueOfRow(hues, row(3, { line: 8 })) },
  ]);
});

test('a list of more than 64 ranks is in bundles of 32, by number', () => {
  const rows = Array.from({ length: 70 }, (_, rank) => row(rank)).filter(({ rank }) => rank !== 7);
  const bundles = bundlesOf(rows);
  expect(bundles.map((members) => bundleLabels(members).label)).toEqual(['ranks 0-6,8-31', 'ranks 32-63', 'ranks 64-69']);
  expect(bundlesOf(rows.slice(0, 64))).toHaveLength(64);
});
