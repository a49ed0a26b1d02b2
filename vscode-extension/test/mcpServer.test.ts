import { expect, test } from 'vitest';
import manifest from '../package.json';
import { MCP_PROVIDER, serverStarts } from '../src/logic/mcpServer';

test('the server of tools starts with the workspace\'s Python', () => {
  expect(serverStarts(['/venv/bin/python', '-m', 'dap_mux'])).toEqual([
    { label: 'dap-mux', command: '/venv/bin/python', args: ['-m', 'dap_mux', 'mcp'] },
  ]);
  expect(serverStarts(['dap-mux'])).toEqual([{ label: 'dap-mux', command: 'dap-mux', args: ['mcp'] }]);
});

test('there is none where dap-mux is not installed', () => {
  expect(serverStarts(undefined)).toEqual([]);
});

test('its provider is the one of the manifest', () => {
  expect(manifest.contributes.mcpServerDefinitionProviders.map(({ id }) => id)).toEqual([MCP_PROVIDER]);
});
