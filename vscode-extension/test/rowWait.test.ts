import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { selectedRow } from '../src/logic/rowWait';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('a selected row is there at once', async () => {
  expect(await selectedRow(() => ['rank 3', 'rank 4'])).toBe('rank 3');
});

test('a row that is being read anew is waited for', async () => {
  let rows: string[] = [];
  const found = selectedRow(() => rows);
  await vi.advanceTimersByTimeAsync(500);
  rows = ['rank 3'];
  await vi.advanceTimersByTimeAsync(100);
  expect(await found).toBe('rank 3');
});

test('a row that does not come back is given up', async () => {
  const found = selectedRow((): string[] => []);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await found).toBeUndefined();
});
