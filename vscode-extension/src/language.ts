/** The language server, `dap-mux lsp`, where the workspace's Python has one. */

import * as vscode from 'vscode';
import { LanguageClient, RevealOutputChannelOn } from 'vscode-languageclient/node';
import type { Command } from './logic/adapterCommand';
import { ask, lookForDapMux } from './python';

const NAME = 'dap-mux: ranks in the text';

/** Starts in the background: nothing waits for it, and without it everything else works. */
export function startLanguageClient(context: vscode.ExtensionContext): void {
  const folder = vscode.workspace.workspaceFolders?.[0];
  void lookForServer(folder).then(async (command) => {
    if (!command) return;
    const client = clientOf(command, folder);
    context.subscriptions.push(client);
    await client.start();
  }, console.error);
}

/**
 * Its packages are an extra, `dap-mux-cluster[lsp]`. Whether they are there shows in a server whose
 * editor leaves at once: it ends well, or with a complaint that would be none of the user's business.
 */
async function lookForServer(folder?: vscode.WorkspaceFolder): Promise<Command | undefined> {
  const settings = vscode.workspace.getConfiguration('dapMux', folder?.uri);
  if (!settings.get<boolean>('languageServer', true)) return undefined;
  const command = await lookForDapMux(folder);
  if (!command) return undefined;
  try {
    await ask(command, ['lsp'], folder);
    return command;
  } catch {
    return undefined;
  }
}

function clientOf([program, ...first]: Command, folder?: vscode.WorkspaceFolder): LanguageClient {
  // Without `transport` it is standard input and output too, and no word --stdio is added.
  const run = {
    command: program,
    args: [...first, 'lsp'],
    ...(folder ? { options: { cwd: folder.uri.fsPath } } : {}),
  };
  return new LanguageClient('dap-mux', NAME, run, {
    documentSelector: [
      { scheme: 'file', language: 'python' },
      { scheme: 'file', pattern: '**/.vscode/launch.json' },
    ],
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    ...(folder ? { workspaceFolder: folder } : {}),
  });
}
