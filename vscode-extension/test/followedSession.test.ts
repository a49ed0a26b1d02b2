import { describe, expect, test, vi } from 'vitest';
import { followedBy, isSame, ONLY_SESSION } from '../src/logic/followedSession';

const never = (): never => {
  throw new Error('not to be asked');
};
const answers = (address: string | null) => vi.fn(() => Promise.resolve({ address }));

describe('which session the text shows', () => {
  test.each([
    [{ request: 'attach', connect: { host: 'localhost', port: 5677 } }, 'localhost:5677'],
    [{ request: 'attach', connect: { host: '::1', port: '6000' } }, '[::1]:6000'],
    [{ request: 'attach', host: 'node1', port: 5677 }, 'node1:5677'],
  ])('by the address in %j', async (configuration, session) => {
    expect(await followedBy({ ...configuration, name: 'Ranks' }, never)).toEqual({ session, configuration: 'Ranks' });
  });

  test.each([
    { request: 'launch', program: 'train.py' },
    { request: 'attach', endpoints: ['node1:5678+4'] },
    { request: 'attach', connect: { socket: '/run/user/1/dap-mux/9.sock' } },
  ])('%j: it is asked where it listens', async (configuration) => {
    const ask = answers('127.0.0.1:40123');
    expect(await followedBy(configuration, ask)).toEqual({ session: '127.0.0.1:40123' });
    expect(ask).toHaveBeenCalledOnce();
  });

  test('one that does not know is not followed by a guess', async () => {
    expect(await followedBy({ request: 'launch', name: 'Ranks' }, answers(null))).toEqual(ONLY_SESSION);
  });

  test('the token goes along', async () => {
    const configuration = { request: 'attach', port: 5677, token: 'secret', name: 'Ranks' };
    expect((await followedBy(configuration, never)).token).toBe('secret');
  });
});

test('what has changed', () => {
  const one = { session: 'localhost:5677', configuration: 'Ranks' };
  expect(isSame(one, { ...one })).toBe(true);
  expect(isSame(one, { ...one, session: 'localhost:5678' })).toBe(false);
  expect(isSame(one, { ...one, configuration: 'Others' })).toBe(false);
  expect(isSame(one, { ...one, token: 'secret' })).toBe(false);
});
