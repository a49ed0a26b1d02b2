import { expect, test } from 'vitest';
import { classesOf, classOf } from '../../src/logic/ranks/classes';
import { search } from '../../src/logic/ranks/filter';
import { countsOf, details, summary } from '../../src/logic/ranks/status';
import { classLabels, rankLabels } from '../../src/logic/ranks/labels';
import { NOWHERE, row, running } from './row';

const eight = [
  running(0),
  running(1),
  row(2, { reason: 'exception', line: 50 }),
  ...[3, 4, 5, 6].map((rank) => row(rank, { coords: { dp: 1, tp: rank % 2 } })),
  row(7, { line: 42, function: 'sync' }),
];

test('ranks in the same state at the same place are one class: trouble first, then the fewest', () => {
  const classes = classesOf(eight);
  expect(classes.map((one) => classLabels(one, false).spoken)).toEqual([
    '1 rank stopped at an exception at train.py:50 in step: 2',
    '1 rank stopped at train.py:42 in sync: 7',
    '4 ranks stopped at train.py:41 in step: 3-6',
    '2 ranks running: 0-1',
  ]);
});

test('a class keeps its key while ranks join it, so its row stays unfolded', () => {
  const before = classesOf(eight)[2]?.key;
  const after = classesOf([...eight.slice(2), row(0)])[2];
  expect(after?.key).toBe(before);
  expect(after?.rows.map(({ rank }) => rank)).toEqual([3, 4, 5, 6, 0]);
});

test('a class tells how many and who, a rank its place in the mesh, state and line', () => {
  const [, , found] = classesOf(eight);
  if (!found) throw new Error('no class');
  expect(classLabels(found, false)).toMatchObject({ label: 'train.py:41', description: '4 ranks · 3-6' });
  const [first] = found.rows;
  if (!first) throw new Error('no rank');
  expect(rankLabels(first, false)).toMatchObject({
    label: 'rank 3',
    description: 'dp=1 tp=1 · stopped · step:41',
    spoken: 'rank 3, dp=1 tp=1, stopped, step:41',
  });
  expect(rankLabels(first, true).label).toBe('rank 3 @job');
});

test('who is not there says why', () => {
  const gone = row(4, { ...NOWHERE, state: 'exited', reason: null, exitCode: 3 });
  expect(rankLabels(gone, false).description).toBe('exited with code 3');
  const waiting = row(5, { ...NOWHERE, state: 'waiting', reason: 'connection refused' });
  expect(rankLabels(waiting, false).description).toBe('waiting: connection refused');
  expect(rankLabels(running(6, { reason: 'barrier 5/8' }), false).description).toContain('running: barrier 5/8');
});

test.each([
  ['', 8],
  ['3', 1],
  ['0-3,7', 5],
  ['stopped', 6],
  ['TP=1', 2],
  ['stopped 4-7', 4],
  ['train.py:42', 1],
  ['sync', 1],
  ['nobody', 0],
])('the search %j finds %i of eight ranks', (text, found) => {
  expect(search(eight, text)).toHaveLength(found);
});

test('the ranks of a class are found from one of them', () => {
  const [, , , first] = eight;
  if (!first) throw new Error('no rank');
  expect(classOf(first, eight).map(({ rank }) => rank)).toEqual([3, 4, 5, 6]);
});

test('the status bar counts', () => {
  expect(summary({ stopped: 6, running: 2, lost: 0 })).toBe('8 ranks · 6 stopped');
  expect(summary({ running: 1 })).toBe('1 rank · 0 stopped');
  expect(summary({ stopped: 1, lost: 2, exited: 1 })).toBe('4 ranks · 1 stopped · 2 lost · 1 exited');
  expect(details({ stopped: 6, running: 2, lost: 0 })).toBe('6 stopped\n2 running');
});

test('a rank that has died is not counted as one that has exited', () => {
  const gone = { ...NOWHERE, state: 'exited' };
  const rows = [row(0), row(1, { ...gone, exitCode: 0 }), row(2, { ...gone, exitCode: -11, reason: 'SIGSEGV (11)' })];
  expect(summary(countsOf(rows))).toBe('3 ranks · 1 stopped · 1 died · 1 exited');
});

test('512 ranks are as many rows as they have places, until one is unfolded', () => {
  const many = Array.from({ length: 512 }, (_, rank) => row(rank, { line: rank % 5 }));
  expect(classesOf(many).map(({ rows }) => rows.length)).toEqual([102, 102, 102, 103, 103]);
});
