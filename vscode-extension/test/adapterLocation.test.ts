import { describe, expect, test } from 'vitest';
import { ConfigurationError, locateAdapter } from '../src/logic/adapterLocation';

describe('where the adapter of a configuration is', () => {
  test.each([
    [{ request: 'launch', program: 'x.py' }, { kind: 'adapter' }],
    [{ request: 'attach', endpoints: ['node1:5678+4'] }, { kind: 'adapter' }],
    [{ request: 'attach', connect: { port: 5678 }, ranks: 4 }, { kind: 'adapter' }],
    [{ request: 'attach', cluster: 'oc' }, { kind: 'adapter' }],
    [{ request: 'attach', port: 5678, tunnel: 'ssh:node1' }, { kind: 'adapter' }],
    [{ request: 'attach', port: 5677, tunnel: false }, { kind: 'server', host: 'localhost', port: 5677 }],
    [
      { request: 'attach', connect: { host: 'node1', port: 5677 } },
      { kind: 'server', host: 'node1', port: 5677 },
    ],
    [{ request: 'attach', port: 5677 }, { kind: 'server', host: 'localhost', port: 5677 }],
    [
      { request: 'attach', connect: { host: '', port: '5677' } },
      { kind: 'server', host: 'localhost', port: 5677 },
    ],
    [{ request: 'attach', connect: { socket: '/x/1.sock' } }, { kind: 'socket', path: '/x/1.sock' }],
    [{ request: 'attach' }, { kind: 'choose' }],
  ])('%j', (configuration, expected) => {
    expect(locateAdapter(configuration)).toEqual(expected);
  });

  test.each([{}, { port: 0 }, { port: 'x' }, { port: 65536 }, 5677])('connect %j is refused', (connect) => {
    expect(() => locateAdapter({ request: 'attach', connect })).toThrow(ConfigurationError);
  });

  test.each([{ processId: '4711' }, { listen: { port: 5678 } }])('%j is refused by name', (attributes) => {
    const [name = ''] = Object.keys(attributes);
    expect(() => locateAdapter({ request: 'attach', ...attributes })).toThrow(`"${name}" is not supported`);
  });
});
