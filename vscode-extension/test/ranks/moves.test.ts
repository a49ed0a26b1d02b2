import { expect, test } from 'vitest';
import { Ranks } from '../../src/logic/ranks/rows';
import { NOWHERE, row, running } from './row';

const COUNTS = { stopped: 3 };

function three(): Ranks {
  const ranks = new Ranks();
  ranks.replace({ ranks: [row(0), row(1), row(2)], counts: COUNTS });
  return ranks;
}

function movedBy(action: (ranks: Ranks) => unknown, ranks = three()): number[] {
  const moment = ranks.moves.moment();
  action(ranks);
  return ranks.moves.since(moment).map(({ rank }) => rank);
}

test('a rank that runs, ends, stands elsewhere or is another process has moved', () => {
  expect(movedBy((ranks) => ranks.apply({ changed: [running(1)], counts: {} }))).toEqual([1]);
  expect(movedBy((ranks) => ranks.apply({ changed: [row(2, { line: 42 })], counts: COUNTS }))).toEqual([2]);
  expect(movedBy((ranks) => ranks.apply({ changed: [row(2, { pid: 9 })], counts: COUNTS }))).toEqual([2]);
  expect(movedBy((ranks) => { ranks.replace({ ranks: [row(0), row(1)], counts: {} }); })).toEqual([2]);
});

test('a rank that is only known better has not', () => {
  expect(movedBy((ranks) => { ranks.replace({ ranks: [row(0), row(1), row(2)], counts: COUNTS }); })).toEqual([]);
  expect(movedBy((ranks) => ranks.apply({ changed: [row(1, { coords: { dp: 1 } })], counts: COUNTS }))).toEqual([]);
  const early = new Ranks();
  early.replace({ ranks: [row(0, NOWHERE)], counts: COUNTS });
  expect(movedBy((ranks) => ranks.apply({ changed: [row(0)], counts: COUNTS }), early)).toEqual([]);
});

test('a rank that runs on has moved, however soon it is back at the same line', () => {
  expect(movedBy((ranks) => { ranks.continued(2, false); })).toEqual([1]);
  expect(movedBy((ranks) => { ranks.continued(1, true); })).toEqual([0, 1, 2]);
});

test('after a stop it is told which ranks run: they have not just begun to', () => {
  const ranks = three();
  ranks.apply({ changed: [running(1)], counts: {} });
  expect(movedBy(() => { ranks.continued(2, false); }, ranks)).toEqual([]);
});

test('workers are compared with nobody', () => {
  expect(movedBy((ranks) => ranks.apply({ changed: [running(1, { worker: 1, threadId: 9 })], counts: {} }))).toEqual([]);
});
