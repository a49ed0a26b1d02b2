import { expect, test } from 'vitest';
import { isFile } from '../../src/logic/ranks/labels';
import { stackLabels } from '../../src/logic/stacks/labels';
import { endOf, frameOf, rowsOf, type Branch, type Frame, type StackRow, type StacksBody } from '../../src/logic/stacks/tree';

function frame(name: string, line: number, path = '/job/train.py'): Frame {
  return { path, line, name, library: path.startsWith('/lib/') };
}

function branch(ranks: string, frames: Frame[], ends = '', stopped = '', branches: Branch[] = []): Branch {
  return { ranks, frames, ends, stopped, branches };
}

function bodyOf(branches: Branch[], missing: StacksBody['missing'] = []): StacksBody {
  return { threads: [{ name: 'MainThread', ranks: '0-3', branches }], missing };
}

const receiving = branch('0,2-3', [
  frame('all_reduce', 90),
  frame('recv', 5, '/lib/socket.py'),
  frame('readinto', 706, '/lib/socket.py'),
], '0,2-3');
const loading = branch('1', [frame('load', 40, '/job/data.py')], '1', '1');
const body = bodyOf([branch('0-3', [frame('<module>', 32), frame('main', 24)], '', '', [receiving, loading])]);

function lines(rows: readonly StackRow[], depth = 0): string[] {
  return rows.flatMap((row) => {
    const { label, description } = stackLabels(row);
    return [`${'  '.repeat(depth)}${label}  ${description}`, ...lines(row.children, depth + 1)];
  });
}

function row(rows: readonly StackRow[], label: string): StackRow {
  const found = every(rows).find((one) => stackLabels(one).label === label);
  if (!found) throw new Error(`no row ${label}`);
  return found;
}

function every(rows: readonly StackRow[]): StackRow[] {
  return rows.flatMap((one) => [one, ...every(one.children)]);
}

test('ranks in the same frames are one branch, and each says where its ranks are', () => {
  expect(lines(rowsOf(body))).toEqual([
    '0-3  4 ranks',
    '  <module>  train.py:32',
    '  main  train.py:24',
    '  0,2-3  3 ranks',
    '    all_reduce  train.py:90',
    '    readinto  socket.py:706 · 2 library frames · running',
    '      recv  socket.py:5',
    '  1  1 rank',
    '    load  data.py:40 · stopped',
  ]);
});

test('a frame may be the innermost one of some ranks, of which some are stopped', () => {
  const deeper = branch('2', [frame('step', 9)], '2');
  const rows = rowsOf(bodyOf([branch('0-2', [frame('main', 24)], '0-1', '1', [deeper])]));
  expect(lines(rows)).toContain('  main  train.py:24 · 1 of 0-1 stopped');
  const apart = rowsOf(bodyOf([branch('0-2', [frame('main', 24)], '0-1', '', [deeper])]));
  expect(lines(apart)).toContain('  main  train.py:24 · 0-1 running');
});

test('a screen reader is told the frame, its place, its state and its ranks', () => {
  const rows = rowsOf(body);
  expect(stackLabels(row(rows, 'load')).spoken).toBe('load, data.py:40, stopped, rank 1');
  expect(stackLabels(row(rows, '0,2-3')).spoken).toBe('ranks 0,2-3');
});

test('what a rank cannot tell comes last, with its reason', () => {
  const rows = rowsOf(bodyOf([loading], [{ ranks: '4', message: 'is waiting' }]));
  expect(lines(rows).at(-1)).toBe('4  is waiting');
  expect(rows.at(-1)).toMatchObject({ kind: 'missing' });
});

test('threads have rows of their own where there are several', () => {
  const threads = ['MainThread', 'loader-#'].map((name) => ({ name, ranks: '1', branches: [loading] }));
  expect(lines(rowsOf({ threads, missing: [] }))).toEqual([
    'MainThread  1 rank · 1',
    '  1  1 rank',
    '    load  data.py:40 · stopped',
    'loader-#  1 rank · 1',
    '  1  1 rank',
    '    load  data.py:40 · stopped',
  ]);
});

test('a branch leads to the innermost frame that its ranks share, a frame to itself', () => {
  const rows = rowsOf(body);
  expect(frameOf(row(rows, '0-3'))).toMatchObject({ name: 'main' });
  expect(frameOf(row(rows, '0,2-3'))).toMatchObject({ name: 'readinto' });
  expect(endOf(row(rows, 'load'))).toEqual({ ranks: '1', stopped: '1' });
  expect(endOf(row(rows, 'main'))).toBeUndefined();
});

test('each row has a key of its own, and keeps it while ranks join its branch', () => {
  const keys = every(rowsOf(body)).map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
  const joined = rowsOf(bodyOf([branch('0-4', [frame('<module>', 32), frame('main', 24)], '', '', [receiving, loading])]));
  expect(every(joined).map(({ key }) => key)).toEqual(keys);
});

test('512 ranks in 512 places are as many collapsed rows; a long rank set follows its number', () => {
  const many = Array.from({ length: 512 }, (_, rank) => branch(`${rank}`, [frame('step', rank)], `${rank}`));
  const all = rowsOf(bodyOf([branch('0-511', [frame('main', 1)], '', '', many)]));
  expect(every(all).filter((one) => one.kind === 'branch' && one.crowded)).toHaveLength(512);
  const even = Array.from({ length: 100 }, (_, index) => 2 * index).join(',');
  expect(lines(rowsOf(bodyOf([branch(even, [frame('main', 1)], even)])))[0]).toBe(`100 ranks  ${even}`);
});

test.each([
  ['/job/train.py', true],
  ['C:\\job\\train.py', true],
  ['\\\\host\\job\\train.py', true],
  ['<frozen runpy>', false],
  ['train.py', false],
])('whether %j is a file: %s', (path, is) => {
  expect(isFile(path)).toBe(is);
});
