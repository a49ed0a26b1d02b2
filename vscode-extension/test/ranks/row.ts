import type { Row } from '../../src/logic/ranks/rows';

/** A rank that stands at train.py:41, but for what is said otherwise. */
export function row(rank: number, other: Partial<Row> = {}): Row {
  const place = { path: '/src/train.py', line: 41, function: 'step', thread: 'MainThread' };
  const rest = { group: 'job', worker: null, coords: null, host: 'node1', pid: 4000 + rank, exitCode: null };
  return {
    rank,
    ...rest,
    ...place,
    state: 'stopped',
    reason: 'breakpoint',
    threadId: rank + 1,
    ...other,
  };
}

export const NOWHERE = { path: null, line: null, function: null, thread: null };

export function running(rank: number, other: Partial<Row> = {}): Row {
  return row(rank, { ...NOWHERE, state: 'running', reason: null, ...other });
}
