import { expect, test } from 'vitest';
import { ageOf, type Origin } from '../../src/logic/compare/age';
import type { CompareBody } from '../../src/logic/compare/answer';

const BODY: CompareBody = {
  values: [{ ranks: '0-2', value: '2.25', outlier: false }],
  statistics: null,
  outliers: '',
  errors: [],
  missing: '3',
};
const GROUPS = { ...BODY, values: [{ ranks: 'trainer:0-1; eval:0', value: '1', outlier: false }], missing: '' };

function moved(...ids: [string, number][]): Origin {
  return { kind: 'running', moved: ids.map(([group, rank]) => ({ group, rank })) };
}

test.each<[string, CompareBody, Origin]>([
  ['', BODY, moved()],
  ['', BODY, moved(['job', 7])],
  ['', GROUPS, moved(['eval', 1])],
  ['These values are from an earlier stop: rank 3 has run on since.', BODY, moved(['job', 3])],
  ['These values are from an earlier stop: ranks 0-1 have run on since.', BODY, moved(['job', 1], ['job', 0], ['job', 4])],
  ['These values are from an earlier stop: rank eval:0 has run on since.', GROUPS, moved(['eval', 0])],
  ['These values are from a session that has ended.', BODY, { kind: 'ended' }],
  ['These values are from the comparison before: loss in 0-3.', BODY, { kind: 'refused', expression: 'loss', ranks: '0-3' }],
  ['These values are from the comparison before: loss in all ranks.', BODY, { kind: 'refused', expression: 'loss', ranks: 'all' }],
  ['These values are from before the window was reloaded.', BODY, { kind: 'reloaded' }],
])('%j', (words, body, origin) => {
  expect(ageOf(body, origin, true)).toEqual({ words, session: true });
});

test('without a session the words say why nothing can be asked again', () => {
  const words = 'These values are from a session that has ended. No session is running now.';
  expect(ageOf(BODY, { kind: 'ended' }, false)).toEqual({ words, session: false });
});
