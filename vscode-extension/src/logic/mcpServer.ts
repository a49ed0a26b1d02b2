/** The server of tools for coding agents, as VS Code starts it. */

import type { Command } from './adapterCommand';

/** The id in package.json's `mcpServerDefinitionProviders`. */
export const MCP_PROVIDER = 'dap-mux.agents';

export interface ServerStart {
  label: string;
  command: string;
  args: string[];
}

/** How the server starts; none where dap-mux is not installed. */
export function serverStarts(found: Command | undefined): ServerStart[] {
  if (!found) return [];
  const [command, ...first] = found;
  return [{ label: 'dap-mux', command, args: [...first, 'mcp'] }];
}
