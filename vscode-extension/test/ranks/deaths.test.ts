import { expect, test } from 'vitest';
import { classesOf } from '../../src/logic/ranks/classes';
import { deathIn, deathMessage } from '../../src/logic/ranks/deaths';
import { classLabels, rankLabels } from '../../src/logic/ranks/labels';
import { NOWHERE, row, running } from './row';

function output(text: string, category = 'stderr'): object {
  return { type: 'event', event: 'output', body: { category, output: `${text}\n` } };
}

test.each([
  'rank 1 died: SIGSEGV (11); last stopped at train.py:6 in train',
  'ranks 0-1,7 died: SIGKILL (9), not sent by dap-mux',
  'ranks eval:0; trainer:0-3 failed: ValueError at train.py:14, exit code 1',
  'rank 3 ended for an unknown reason',
])('the session says: %s', (text) => {
  expect(deathIn(output(`dap-mux: ${text}`))).toBe(text);
});

test.each([
  output('dap-mux: rank 1: cannot connect: connection failed: refused'),
  output('rank 1 died: a line that a rank has printed'),
  output('dap-mux: rank 1 died: printed to standard output', 'stdout'),
  { type: 'event', event: 'stopped', body: { threadId: 1 } },
])('%j is not such a message', (message) => {
  expect(deathIn(message)).toBeUndefined();
});

test('one notification for several deaths begins with the first', () => {
  expect(deathMessage(['rank 1 died: SIGSEGV (11)'])).toBe('rank 1 died: SIGSEGV (11)');
  expect(deathMessage(['a', 'b', 'c'])).toBe('a (2 more in the log)');
});

const dead = row(2, { ...NOWHERE, state: 'exited', reason: 'SIGSEGV (11)', exitCode: -11 });
const held = row(4, { ...NOWHERE, state: 'waiting', reason: 'failed: ValueError at a.py:3, held, 9 s left' });

test('dead ranks come first, before those that ended as they should', () => {
  const over = row(3, { ...NOWHERE, state: 'exited', reason: 'exit code 0', exitCode: 0 });
  const classes = classesOf([running(0), row(1, { reason: 'exception' }), dead, over, held]);
  expect(classes.map((one) => classLabels(one, false).spoken)).toEqual([
    '1 rank failed: 4',
    '1 rank died: 2',
    '1 rank stopped at an exception at train.py:41 in step: 1',
    '1 rank running: 0',
    '1 rank exited: 3',
  ]);
});

test('a dead rank says of what', () => {
  expect(rankLabels(dead, false).description).toBe('died: SIGSEGV (11)');
  expect(rankLabels(held, false).description).toBe('failed: ValueError at a.py:3, held, 9 s left');
});
