/**
 * The extension's entry point: each part registers itself, and VS Code disposes of it.
 *
 * `logic/` makes the decisions and is pure; the rest talks to VS Code. The adapter is `dap-mux
 * adapter` in the workspace's Python, or a running session: this extension only starts it.
 */

import type * as vscode from 'vscode';
import { registerAnnouncementServer } from './announcementServer';
import { registerDoctorCommand } from './commands/doctor';
import { registerInstallCommand } from './commands/install';
import { registerStartCommands } from './commands/start';
import { registerAdapterFactory } from './debug/adapterFactory';
import { registerConfigurationProvider } from './debug/configurationProvider';
import { tickInstallStep } from './installStep';
import { LanguageServer } from './languageClient';
import { log } from './log';
import { registerMcpProvider } from './mcpProvider';
import { RankSessions } from './ranks/rankSession';
import { updateTerminalCommand } from './terminalCommand';
import { registerRanks } from './views/index';

export function activate(context: vscode.ExtensionContext): void {
  const sessions = new RankSessions();
  const server = new LanguageServer(context, sessions);
  const tellInstallStep = tickInstallStep(context);
  const update = (): void => {
    server.start();
    updateTerminalCommand(context, tellInstallStep);
  };
  context.subscriptions.push(
    log,
    sessions,
    registerConfigurationProvider(),
    registerAdapterFactory(),
    registerInstallCommand(context, update),
    registerStartCommands(),
    registerDoctorCommand(context),
    registerAnnouncementServer(context),
    registerMcpProvider(),
  );
  registerRanks(context, sessions);
  update();
}
