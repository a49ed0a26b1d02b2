import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { attachTo, completed, isCount, isEmpty, LAUNCH, mayAttachAgain, POD, REMOTE } from '../src/logic/configurations';
import { ContextKey } from '../src/constants';
import { locateAdapter } from '../src/logic/adapterLocation';
import { RUN } from '../src/logic/adapterCommand';
import { terminalScript } from '../src/logic/terminalScript';

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
    configurationDefaults: Record<string, Record<string, { onAutoForward: string }>>;
    views: { debug: { id: string; when: string }[] };
    walkthroughs: {
      steps: { completionEvents: string[]; media: { markdown: string } | { image: Record<string, string> } }[];
    }[];
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

test('a job that the debug session has launched is not ended for a mapping', () => {
  expect([attachTo(SESSION), LAUNCH, {}].map(mayAttachAgain)).toEqual([true, false, false]);
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

test('the walkthrough has at most five steps, and a page or a picture for each theme', () => {
  for (const { steps } of PACKAGE.contributes.walkthroughs) {
    expect(steps.length).toBeLessThanOrEqual(5);
    for (const { media } of steps) {
      if ('markdown' in media) {
        expect(readFileSync(path.join(ROOT, media.markdown), 'utf8')).toMatch(/^# /);
        continue;
      }
      expect(media.image['light']).not.toBe(media.image['dark']);
      for (const file of Object.values(media.image)) expect(readFileSync(path.join(ROOT, file)).length).toBeGreaterThan(0);
    }
  }
});

test('no page of the walkthrough shows a picture of one theme in all', () => {
  const pages = readdirSync(path.join(ROOT, 'walkthrough')).filter((name) => name.endsWith('.md'));
  for (const name of pages) expect(readFileSync(path.join(ROOT, 'walkthrough', name), 'utf8')).not.toContain('![');
});

test('installing is done once dap-mux is installed, not once its button was pressed', () => {
  const [install] = PACKAGE.contributes.walkthroughs[0]?.steps ?? [];
  expect(install?.completionEvents).toEqual([`onContext:${ContextKey.installed}`]);
});

test('our views are there before a session of a type that has ranks here', () => {
  for (const { when } of PACKAGE.contributes.views.debug) {
    expect(when).toContain('debugConfigurationType == dap-mux');
    expect(when).toContain(`${ContextKey.debugpyHasRanks} && debugConfigurationType == debugpy`);
  }
});

test.each([
  ['/usr/bin/python3 -m dap_mux run -n 4 train.py', true],
  ['/job/.venv/bin/python /job/.venv/bin/dap-mux attach localhost:5678+4', true],
  ['/usr/bin/python3 -m dap_mux.rank train.py', true],
  ['/usr/bin/python3 -m http.server', false],
])('whether VS Code says nothing of a port of %s: %s', (commandLine, quiet) => {
  const ports = PACKAGE.contributes.configurationDefaults['remote.portsAttributes'] ?? {};
  const [[pattern, { onAutoForward }] = ['', { onAutoForward: '' }]] = Object.entries(ports);
  expect(onAutoForward).toBe('ignore');
  expect(new RegExp(pattern).test(commandLine)).toBe(quiet);
});

test('dap-mux in a terminal runs in the Python of the workspace, or says how to install it', () => {
  const found = terminalScript('/bin/echo'); // as if it had dap-mux: it ends with 0
  expect(execFileSync('sh', ['-c', found, 'dap-mux', 'run', '-n', '4'], { encoding: 'utf8' })).toContain(`-c ${RUN} run -n 4`);
  const { status, stderr } = spawnSync('sh', ['-c', terminalScript("/a 'folder'/python")], { encoding: 'utf8' });
  expect(status).toBe(127);
  expect(stderr).toContain("not installed for /a 'folder'/python");
});

test('nothing of it runs in a workspace that is not trusted', () => {
  expect(PACKAGE.capabilities['untrustedWorkspaces']?.supported).toBe(false);
});
