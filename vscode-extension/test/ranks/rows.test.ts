import { expect, test } from 'vitest';
import { Ranks } from '../../src/logic/ranks/rows';
import { row, running } from './row';

function four(): Ranks {
  const ranks = new Ranks();
  ranks.replace({ ranks: [0, 1, 2, 3].map((rank) => row(rank)), counts: { stopped: 4 } });
  return ranks;
}

test('a change replaces the rows of its ranks, and only these', () => {
  const ranks = four();
  expect(ranks.apply({ changed: [running(2)], counts: { stopped: 3, running: 1, lost: 0 } })).toBe(true);
  expect(ranks.all().map(({ state }) => state)).toEqual(['stopped', 'stopped', 'running', 'stopped']);
  expect(ranks.counts()).toEqual({ stopped: 3, running: 1 });
});

test('an event has what changed of a row, and of a rank that is not listed yet too little', () => {
  const ranks = four();
  const id = { worker: null, group: 'job' };
  const counts = { stopped: 4 };
  expect(ranks.apply({ changed: [{ ...id, rank: 1, line: 42 }], counts })).toBe(true);
  expect(ranks.all()[1]).toEqual(row(1, { line: 42 }));
  expect(ranks.apply({ changed: [{ ...id, rank: [0, 3], line: 43 }], counts })).toBe(true);
  expect(ranks.all().map(({ line }) => line)).toEqual([43, 42, 41, 43]);
  expect(ranks.apply({ changed: [{ ...id, rank: 9, line: 42 }], counts })).toBe(true);
  expect(ranks.all()).toHaveLength(4);
});

test('counts that do not fit tell that something was missed: a rank was dropped', () => {
  expect(four().apply({ changed: [], counts: { stopped: 3 } })).toBe(false);
});

test('a worker that has ended leaves the list, as in the session', () => {
  const ranks = four();
  const worker = { worker: 1, threadId: 9 };
  expect(ranks.apply({ changed: [running(2, worker)], counts: { stopped: 4, running: 1 } })).toBe(true);
  expect(ranks.all().map(({ rank }) => rank)).toEqual([0, 1, 2, 2, 3]);
  expect(ranks.withThread(9)?.worker).toBe(1);
  const gone = { ...running(2, worker), state: 'exited' };
  expect(ranks.apply({ changed: [gone], counts: { stopped: 4 } })).toBe(true);
  expect(ranks.all()).toHaveLength(4);
});

test('two groups may have a rank of the same number', () => {
  const ranks = new Ranks();
  ranks.replace({ ranks: [row(0, { group: 'trainer' }), row(0, { group: 'eval' })], counts: { stopped: 2 } });
  expect(ranks.all().map(({ group }) => group)).toEqual(['eval', 'trainer']);
});
