import { expect, test } from 'vitest';
import { focusMark } from '../../src/logic/ranks/focusMark';
import { row, running } from './row';

const everywhere = (): boolean => true;
const APART = [row(0), row(1), row(2, { line: 50 }), running(3)];

test('the line of the focused rank is marked, with its name', () => {
  expect(focusMark(APART, 3, everywhere)).toEqual({ path: '/src/train.py', line: 50, text: '◀ focus: rank 2' });
  expect(focusMark(APART, 2, everywhere)).toEqual({ path: '/src/train.py', line: 41, text: '◀ focus: rank 1' });
  const groups = [row(0, { group: 'trainer' }), row(0, { group: 'eval', line: 50, threadId: 2 })];
  expect(focusMark(groups, 2, everywhere)?.text).toBe('◀ focus: rank 0 @eval');
});

test('no mark where one line alone has stopped ranks, or is visible, or nobody stands in focus', () => {
  expect(focusMark([row(0), row(1), running(2)], 1, everywhere)).toBeUndefined();
  const files = [row(0), row(1, { path: '/src/model.py' })];
  expect(focusMark(files, 1, (path) => path === '/src/train.py')).toBeUndefined();
  expect(focusMark(files, 1, everywhere)?.path).toBe('/src/train.py');
  expect(focusMark(APART, 4, everywhere)).toBeUndefined();
  expect(focusMark(APART, 99, everywhere)).toBeUndefined();
});
