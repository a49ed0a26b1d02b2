import { expect, test, vi } from 'vitest';
import { Throttler } from '../../src/logic/throttler';
import { Frames } from '../../src/logic/ranks/frames';
import { rowHasGone, stackItem, variableItem } from '../../src/logic/ranks/stackItems';

test("a row's and a frame's menu tell the thread", () => {
  expect(stackItem(['7', { sessionId: 's', threadId: 'thread:s:7' }])).toEqual({ session: 's', threadId: 7 });
  expect(stackItem(['file:///a.py', { sessionId: 's', threadId: 'thread:s:2', frameId: 'stackframe:x' }])).toEqual({
    session: 's',
    threadId: 2,
  });
  expect(stackItem([])).toEqual({ session: undefined, threadId: undefined });
});

test("a variable's menu tells the expression; a container has none", () => {
  const variable = { name: '0', evaluateName: 'xs[0]', value: '1' };
  expect(variableItem([{ sessionId: 's', container: {}, variable }])).toEqual({
    session: 's',
    name: '0',
    expression: 'xs[0]',
  });
  expect(variableItem([{ variable: { name: 'loss', value: '1' } }])?.expression).toBe('loss');
  expect(variableItem([{ container: {} }])).toBeUndefined();
});

test('a row that is gone when it is clicked is not taken for a key', () => {
  expect([[undefined, undefined], [null, null], [undefined, [{}]]].map(rowHasGone)).toEqual([true, true, true]);
  expect([[], [undefined], [{}, undefined]].map(rowHasGone)).toEqual([false, false, false]);
});

test('how far up a frame is: pages count on, and a continue ends it', () => {
  const frames = new Frames();
  const ask = (seq: number, startFrame: number, ids: number[]): void => {
    frames.sent({ type: 'request', command: 'stackTrace', seq, arguments: { threadId: 1, startFrame } });
    const body = { stackFrames: ids.map((id) => ({ id })) };
    frames.received({ type: 'response', command: 'stackTrace', request_seq: seq, success: true, body });
  };
  ask(4, 0, [11]);
  ask(5, 1, [12, 13]);
  expect([11, 12, 13, 14].map((id) => frames.depth(id))).toEqual([0, 1, 2, undefined]);
  frames.received({ type: 'response', command: 'threads', request_seq: 6, success: true, body: {} });
  frames.received({ type: 'event', event: 'continued', body: {} });
  expect(frames.depth(11)).toBeUndefined();
});

test('many calls within a moment are one, and a call during the work is one more', async () => {
  vi.useFakeTimers();
  let done = 0;
  let finish = (): void => undefined;
  const coalesced = new Throttler(() => {
    done += 1;
    return new Promise<void>((resolve) => (finish = resolve));
  }, 100);
  for (let call = 0; call < 512; call += 1) coalesced.schedule();
  await vi.advanceTimersByTimeAsync(99);
  expect(done).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(done).toBe(1);
  for (let call = 0; call < 512; call += 1) coalesced.schedule();
  await vi.advanceTimersByTimeAsync(1000);
  expect(done).toBe(1);
  finish();
  await vi.advanceTimersByTimeAsync(100);
  expect(done).toBe(2);
  coalesced.dispose();
  finish();
  await vi.advanceTimersByTimeAsync(1000);
  expect(done).toBe(2);
  vi.useRealTimers();
});
