import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RefreshGate } from '../src/logic/refreshGate';

let refreshed = 0;
let gate: RefreshGate;

beforeEach(() => {
  vi.useFakeTimers();
  refreshed = 0;
  gate = new RefreshGate(() => refreshed++);
});

afterEach(() => {
  gate.dispose();
  vi.useRealTimers();
});

test('the first change is told at once, those while the view reads once, after it has read', () => {
  gate.schedule();
  expect(refreshed).toBe(1);
  vi.advanceTimersByTime(150);
  gate.read(); // its classes
  gate.schedule();
  gate.schedule();
  vi.advanceTimersByTime(150);
  gate.read(); // the ranks of one, late
  vi.advanceTimersByTime(150);
  expect(refreshed).toBe(1);
  vi.advanceTimersByTime(100);
  expect(refreshed).toBe(2);
});

test('what is read without a change leads to nothing', () => {
  gate.read();
  vi.runAllTimers();
  expect(refreshed).toBe(0);
});

test('a view that does not read is told again, but seldom', () => {
  for (let ms = 0; ms < 4_500; ms += 100) {
    gate.schedule();
    vi.advanceTimersByTime(100);
  }
  expect(refreshed).toBe(3);
});

test('without a change meanwhile it is told no more', () => {
  gate.schedule();
  gate.read();
  vi.runAllTimers();
  expect(refreshed).toBe(1);
});
