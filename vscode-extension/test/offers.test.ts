import { expect, test } from 'vitest';
import { locateAdapter } from '../src/logic/adapterLocation';
import { attachOffers, describeLocation } from '../src/logic/offers';
import { isAt } from '../src/logic/sessions';

function session(port: number, socket?: string): Parameters<typeof isAt>[0] {
  return { host: '127.0.0.1', port, socket, pid: port, groups: [] };
}

test('the newest session is offered first, and no more than fit a dialog', () => {
  const offers = attachOffers([1, 2, 3, 4, 5].map((port) => session(port)));
  expect(offers.map(({ port }) => port)).toEqual([5, 4, 3]);
  expect(attachOffers([])).toEqual([]);
});

test.each([
  [{ connect: { host: 'login1', port: 5677 } }, 'login1:5677'],
  [{ connect: { host: '::1', port: 5677 } }, '[::1]:5677'],
  [{ connect: { socket: '/run/9.sock' } }, '/run/9.sock'],
  [{}, ''],
])('%j points at %j', (configuration, described) => {
  expect(describeLocation(locateAdapter(configuration))).toBe(described);
});

test.each([
  [{ connect: { port: 5677 } }, true],
  [{ connect: { host: '127.0.0.1', port: 5677 } }, true],
  [{ connect: { host: 'login1', port: 5677 } }, false],
  [{ connect: { port: 5678 } }, false],
  [{ connect: { socket: '/run/9.sock' } }, true],
  [{ connect: { socket: '/run/8.sock' } }, false],
  [{ endpoints: 'localhost:5677' }, false],
])('%j reaches the session: %j', (configuration, reached) => {
  expect(isAt(session(5677, '/run/9.sock'), locateAdapter(configuration))).toBe(reached);
});
