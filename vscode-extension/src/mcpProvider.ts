/** Offers the tools of `dap-mux mcp` to agents in VS Code, from 1.101 on. */

import * as vscode from 'vscode';
import { MCP_PROVIDER, serverStarts } from './logic/mcpServer';
import { lookForDapMux } from './python';

/** The part of VS Code's newer API that we use; the types that we compile against are older. */
interface Newer {
  McpStdioServerDefinition?: new (label: string, command: string, args: string[]) => unknown;
  lm?: {
    registerMcpServerDefinitionProvider?: (
      id: string,
      provider: { provideMcpServerDefinitions: () => Promise<unknown[]> },
    ) => vscode.Disposable;
  };
}

export function registerMcpProvider(api: Newer = vscode as Newer): vscode.Disposable {
  const { McpStdioServerDefinition: Definition, lm } = api;
  const nothing = new vscode.Disposable(() => undefined);
  if (!Definition || !lm?.registerMcpServerDefinitionProvider) return nothing;
  try {
    return lm.registerMcpServerDefinitionProvider(MCP_PROVIDER, {
      provideMcpServerDefinitions: async () => {
        const found = await lookForDapMux(vscode.workspace.workspaceFolders?.[0]);
        return serverStarts(found).map(({ label, command, args }) => new Definition(label, command, args));
      },
    });
  } catch {
    return nothing; // VS Code 1.100 has it as a proposal, which throws
  }
}
