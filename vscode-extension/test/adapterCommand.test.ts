import { describe, expect, test } from 'vitest';
import { adapterArguments, candidates, installCommand, installPython, RUN } from '../src/logic/adapterCommand';

const MODULE = ['-c', RUN];

describe('which Python runs dap-mux', () => {
  test('one that the user has named is the only one', () => {
    const found = { attribute: '/mine/python', extension: '/a/python', setting: '/b/python' };
    expect(candidates(found)).toEqual([['/mine/python', ...MODULE]]);
  });

  test('then the one of the Python extension, the setting, the folder, the path', () => {
    const found = { extension: '/a/python', setting: '/b/python', environment: '/c/python' };
    expect(candidates(found).map(([program]) => program)).toEqual([
      '/a/python',
      '/b/python',
      '/c/python',
      'python3',
      'python',
      'dap-mux',
    ]);
  });

  test('none is tried twice', () => {
    const found = { extension: 'python3', setting: '/b/python', environment: '/b/python' };
    const programs = candidates(found).map(([program]) => program);
    expect(programs).toEqual([...new Set(programs)]);
  });

  test('an installation goes where the first one looks', () => {
    expect(installPython(candidates({ extension: '/a/python' }))).toBe('/a/python');
    expect(installPython(candidates({}))).toBe('python3');
  });

  test('what is installed is a wheel, with the packages of the language server', () => {
    expect(installCommand('/a/python', '/x y/dap_mux.whl')).toEqual([
      '/a/python',
      '-m',
      'pip',
      'install',
      '/x y/dap_mux.whl[lsp]',
    ]);
  });
});

describe('what the adapter must know before the first message', () => {
  test('nothing by default', () => {
    expect(adapterArguments({ request: 'attach', endpoints: ['localhost:5678'] })).toEqual(['adapter']);
  });

  test('its address, its log, its limits', () => {
    const configuration = { listenAddress: 6000, logDir: 'a b', verbosity: 2, insecure: true };
    expect(adapterArguments(configuration)).toEqual([
      'adapter',
      '--listen',
      '6000',
      '--log-dir',
      'a b',
      '--insecure',
      '-vv',
    ]);
  });

  test('what is no text goes with the request, and is refused there', () => {
    expect(adapterArguments({ listenAddress: ['x'], verbosity: 'x', insecure: 'yes' })).toEqual(['adapter']);
  });

  test('a token is never a word on a command line', () => {
    expect(adapterArguments({ token: 'secret' })).not.toContain('secret');
  });
});
