/** The command *Attach to a Running Session*. */

import * as vscode from 'vscode';
import { Command } from '../constants';
import { TYPE } from '../logic/configurations';

export function registerAttachCommand(): vscode.Disposable {
  return vscode.commands.registerCommand(Command.attach, attachToRunningSession);
}

async function attachToRunningSession(): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0];
  const name = vscode.l10n.t('Attach to a running session');
  await vscode.debug.startDebugging(folder, { name, type: TYPE, request: 'attach' });
}
