/** Starts the language server, `dap-mux lsp`, if the workspace's Python has it. */

import * as vscode from 'vscode';
import { LanguageClient, RevealOutputChannelOn } from 'vscode-languageclient/node';
import { Setting, SETTINGS } from './constants';
import { log } from './log';
import type { Command } from './logic/adapterCommand';
import { lookForDapMux, run } from './python';

const NAME = 'dap-mux: ranks in the text';

/** Starts in the background: nothing waits for it, and everything else works without it. */
export function startLanguageClient(context: vscode.ExtensionContext): void {
  const folder = vscode.workspace.workspaceFolders?.[0];
  void findServer(folder).then(
    async (command) => {
      if (!command) return;
      const client = clientFor(command, folder);
      context.subscriptions.push(client);
      await client.start();
    },
    (error: unknown) => {
      log.error(`language server: ${String(error)}`);
    },
  );
}

/**
 * Its packages are an extra, `dap-mux-cluster[lsp]`. To find out whether they are installed, run a
 * server with an empty input: it exits with an error if they are not.
 */
async function findServer(folder?: vscode.WorkspaceFolder): Promise<Command | undefined> {
  const settings = vscode.workspace.getConfiguration(SETTINGS, folder?.uri);
  if (!settings.get<boolean>(Setting.languageServer, true)) return undefined;
  const command = await lookForDapMux(folder);
  if (!command) return undefined;
  try {
    await run(command, ['lsp'], folder);
    return command;
  } catch (error) {
    log.info(`no language server: ${String(error)}`);
    return undefined;
  }
}

function clientFor([program, ...first]: Command, folder?: vscode.WorkspaceFolder): LanguageClient {
  // Without `transport` it uses standard input and output too, and adds no argument --stdio.
  const server = {
    command: program,
    args: [...first, 'lsp'],
    ...(folder ? { options: { cwd: folder.uri.fsPath } } : {}),
  };
  return new LanguageClient('dap-mux', NAME, server, {
    documentSelector: [
      { scheme: 'file', language: 'python' },
      { scheme: 'file', pattern: '**/.vscode/launch.json' },
    ],
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    ...(folder ? { workspaceFolder: folder } : {}),
  });
}
