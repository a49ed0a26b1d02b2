import { expect, test } from 'vitest';
import { comparedAt, divergedThread, wrongNumberIn } from '../../src/logic/ranks/wrongNumbers';

const PLACE = { source: { path: '/job/train.py' }, line: 34 };

function output(text: string, more: object = PLACE): object {
  return { type: 'event', event: 'output', body: { category: 'important', output: `dap-mux: ${text}\n`, ...more } };
}

test.each([
  [
    'diverged: step 3, rank 1: the gradient of head.weight differs, at train.py:34 f; ranks stop after step 4',
    'step 3, rank 1: the gradient of head.weight differs',
  ],
  ['diverged: step 2, rank 1: rank 1 made no step; ranks stop', 'step 2, rank 1: rank 1 made no step'],
  [
    'rank 0: not finite: 1 of 1 elements (1 inf) of the loss, step 4: made by log at train.py:34 (step 4): 1, at train.py:40 f',
    'rank 0: not finite: 1 of 1 elements (1 inf) of the loss, step 4',
  ],
])('a line is marked for: %s', (text, marked) => {
  expect(wrongNumberIn(output(text))).toEqual({ path: '/job/train.py', line: 34, text: marked });
});

test.each([
  output('diverged: step 3, rank 1: w differs', {}),
  output('not all ranks run the same file', PLACE),
  output('diverged: step 3, rank 1: w differs', { ...PLACE, category: 'stdout' }),
  { type: 'event', event: 'stopped', body: { threadId: 1 } },
])('no line is marked for %j', (message) => {
  expect(wrongNumberIn(message)).toBeUndefined();
});

test('a stop where ranks differ says what to compare', () => {
  const stopped = { type: 'event', event: 'stopped', body: { reason: 'exception', text: 'Diverged', threadId: 7 } };
  expect(divergedThread(stopped)).toBe(7);
  expect(divergedThread({ ...stopped, body: { reason: 'exception', text: 'ValueError', threadId: 7 } })).toBeUndefined();
  expect(comparedAt("step 3, rank 1: w differs; compare: model.get_parameter('w')")).toBe("model.get_parameter('w')");
  expect(comparedAt('step 3, rank 1: rank 1 made no step')).toBeUndefined();
});
