import { expect, test } from 'vitest';
import { mayAttachAgain } from '../src/logic/attachAgain';

test('a job that the debug session has launched is not ended for a mapping', () => {
  expect(mayAttachAgain({ request: 'attach', connect: { port: 5677 } })).toBe(true);
  expect(mayAttachAgain({ request: 'launch', program: 'train.py' })).toBe(false);
  expect(mayAttachAgain({})).toBe(false);
});
