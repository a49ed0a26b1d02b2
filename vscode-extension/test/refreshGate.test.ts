import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RefreshGate } from '../src/logic/refreshGate';

let refreshed = 0;
let settled = 0;
let gate: RefreshGate;

beforeEach(() => {
  vi.useFakeTimers();
  refreshed = settled = 0;
  gate = new RefreshGate(
    () => refreshed++,
    async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      settled++;
    },
  );
});

afterEach(() => {
  gate.dispose();
  vi.useRealTimers();
});

test('the first change is told at once, those while the view reads once, after it has read', async () => {
  gate.schedule();
  expect(refreshed).toBe(1);
  vi.advanceTimersByTime(150);
  gate.read(); // its classes
  gate.schedule();
  gate.schedule();
  vi.advanceTimersByTime(150);
  gate.read(); // the ranks of one, late
  vi.advanceTimersByTime(150);
  expect([refreshed, settled]).toEqual([1, 0]);
  await vi.advanceTimersByTimeAsync(75);
  expect([refreshed, settled]).toEqual([1, 0]);
  await vi.advanceTimersByTimeAsync(50);
  expect([refreshed, settled]).toEqual([2, 1]);
});

test('a view that reads again before all is settled is told afterwards', async () => {
  gate.schedule();
  gate.read();
  gate.schedule();
  await vi.advanceTimersByTimeAsync(225);
  gate.read();
  await vi.advanceTimersByTimeAsync(200);
  expect([refreshed, settled]).toEqual([1, 1]);
  await vi.advanceTimersByTimeAsync(100);
  expect([refreshed, settled]).toEqual([2, 2]);
});

test('what is read without a change leads to no refresh', async () => {
  gate.read();
  await vi.runAllTimersAsync();
  expect([refreshed, settled]).toEqual([0, 1]);
});

test('a view that does not read is told again, but seldom', async () => {
  for (let ms = 0; ms < 4_500; ms += 100) {
    gate.schedule();
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(refreshed).toBe(3);
});

test('without a change meanwhile it is told no more', async () => {
  gate.schedule();
  gate.read();
  await vi.runAllTimersAsync();
  expect(refreshed).toBe(1);
});

test('what fails once all is read keeps no change back', async () => {
  const failing = new RefreshGate(
    () => refreshed++,
    () => Promise.reject(new Error('a command of VS Code has failed')),
  );
  failing.schedule();
  failing.schedule();
  await vi.advanceTimersByTimeAsync(2_100);
  expect(refreshed).toBe(2);
  failing.dispose();
});
