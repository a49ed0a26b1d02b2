/** Starts the language server, `dap-mux lsp`, if the workspace's Python has it. */

import * as vscode from 'vscode';
import { DidChangeConfigurationNotification, LanguageClient, RevealOutputChannelOn } from 'vscode-languageclient/node';
import { offerToAttachAgain } from './commands/attachAgain';
import { registerRunAllHere } from './commands/runAllHere';
import { ContextKey, MAPPING_WRITTEN, Setting, SETTINGS } from './constants';
import { log } from './log';
import type { Command } from './logic/adapterCommand';
import type { FollowedSession } from './logic/followedSession';
import { lookForDapMux, run } from './python';
import { CurrentSession } from './ranks/currentSession';
import type { RankSessions } from './ranks/rankSession';

const NAME = 'dap-mux: ranks in the text';
/** The key of the server's settings in `workspace/didChangeConfiguration`. */
const SERVER_SETTINGS = 'dap-mux';

export class LanguageServer {
  private starting: Promise<boolean> = Promise.resolve(false);

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly sessions: RankSessions,
  ) {}

  /**
   * Starts in the background, unless it runs: nothing waits for it, and everything else works
   * without it. Called again when dap-mux has been installed.
   */
  start(): void {
    this.starting = this.starting.then(async (started) => started || (await this.startOnce())).catch((error: unknown) => {
      log.error(`language server: ${String(error)}`);
      return false;
    });
  }

  /** Whether there is a server to start. */
  private async startOnce(): Promise<boolean> {
    const folder = vscode.workspace.workspaceFolders?.[0];
    const command = await findServer(folder);
    if (!command) return false;
    const current = new CurrentSession(this.sessions);
    const client = clientFor(command, folder, this.sessions, current);
    const follow = async (followed: FollowedSession): Promise<void> => {
      if (!client.isRunning()) return; // its options will say it
      await client.sendNotification(DidChangeConfigurationNotification.type, {
        settings: { [SERVER_SETTINGS]: followed },
      });
    };
    const following = current.onDidChange((followed) => void follow(followed));
    this.context.subscriptions.push(client, current, following, registerRunAllHere(client));
    await client.start();
    await vscode.commands.executeCommand('setContext', ContextKey.languageServer, true);
    await follow(current.followed); // it may have changed since the options were sent
    return true;
  }
}

/**
 * Its packages are an extra, `[lsp]`. To find out whether they are installed, run a
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

function clientFor(
  [program, ...first]: Command,
  folder: vscode.WorkspaceFolder | undefined,
  sessions: RankSessions,
  current: CurrentSession,
): LanguageClient {
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
    initializationOptions: () => current.followed,
    middleware: {
      provideCodeLenses: () => [], // see commands/runAllHere.ts
      // The server can only say when a mapping takes effect; the extension can attach again.
      executeCommand: (command, args: unknown[], next) => {
        if (command !== MAPPING_WRITTEN) return next(command, args) as unknown;
        offerToAttachAgain(sessions, args).catch((error: unknown) => {
          log.error(`attach again: ${String(error)}`);
        });
        return undefined;
      },
    },
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    ...(folder ? { workspaceFolder: folder } : {}),
  });
}
