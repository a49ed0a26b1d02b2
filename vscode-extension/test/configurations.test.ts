import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { attachTo, completed, isCount, isEmpty, LAUNCH, POD, REMOTE } from '../src/logic/configurations';
import { locateAdapter } from '../src/logic/adapterLocation';

interface Package {
  capabilities: Record<string, { supported: boolean }>;
  contributes: {
    debuggers: [
      {
        configurationAttributes: Record<string, { properties: Record<string, unknown> }>;
        initialConfigurations: Record<string, unknown>[];
        configurationSnippets: { body: Record<string, unknown> }[];
      },
    ];
    walkthroughs: { steps: { media: { markdown: string } }[] }[];
  };
}

const ROOT = path.join(__dirname, '..');
const PACKAGE = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as Package;
const [DEBUGGER] = PACKAGE.contributes.debuggers;
const SESSION = { host: 'localhost', port: 5677, socket: undefined, pid: 1, groups: [] };

test('a new launch.json begins with what F5 offers', () => {
  expect(DEBUGGER.initialConfigurations).toEqual([POD, REMOTE, LAUNCH]);
});

test('what is offered uses attributes that exist', () => {
  const bodies = DEBUGGER.configurationSnippets.map(({ body }) => body);
  for (const each of [...bodies, POD, REMOTE, LAUNCH, attachTo(SESSION)]) {
    const known = DEBUGGER.configurationAttributes[String(each['request'])]?.properties ?? {};
    const unknown = Object.keys(each).filter((name) => !['name', 'type', 'request'].includes(name));
    expect(unknown.filter((name) => !(name in known))).toEqual([]);
  }
});

test('F5 without launch.json sends nothing at all', () => {
  expect(isEmpty({})).toBe(true);
  expect(isEmpty({ __configurationTarget: 5 })).toBe(true);
  expect(isEmpty(REMOTE)).toBe(false);
});

describe('what is added to a configuration', () => {
  test('the workspace and our own events', () => {
    expect(completed(REMOTE, '/work')).toEqual({
      ...REMOTE,
      workspaceFolder: '/work',
      events: ['ranks'],
      showReturnValue: true,
      __defaults: ['showReturnValue'],
    });
  });

  test('nothing that the user has said is changed', () => {
    const configuration = { workspaceFolder: '/mine', events: ['ranks', 'more'], showReturnValue: false };
    const complete = completed(configuration, '/work');
    expect(complete).toEqual({ ...configuration, __defaults: [] });
  });
});

test('a running session is joined without an adapter of our own', () => {
  expect(locateAdapter(attachTo(SESSION))).toEqual({ kind: 'server', host: 'localhost', port: 5677 });
  const socket = attachTo({ ...SESSION, socket: '/x.sock' });
  expect(locateAdapter(socket)).toEqual({ kind: 'socket', path: '/x.sock' });
});

test.each([
  ['4', true],
  [' 64 ', true],
  ['0', false],
  ['-1', false],
  ['1.5', false],
  ['four', false],
  ['', false],
])('%j is a number of ranks: %s', (text, fits) => {
  expect(isCount(text)).toBe(fits);
});

test('the walkthrough has at most five steps, and a page for each', () => {
  for (const { steps } of PACKAGE.contributes.walkthroughs) {
    expect(steps.length).toBeLessThanOrEqual(5);
    for (const { media } of steps) {
      expect(readFileSync(path.join(ROOT, media.markdown), 'utf8')).toMatch(/^# /);
    }
  }
});

test('nothing of it runs in a workspace that is not trusted', () => {
  expect(PACKAGE.capabilities['untrustedWorkspaces']?.supported).toBe(false);
});
