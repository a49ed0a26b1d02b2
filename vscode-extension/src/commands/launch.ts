/** The command *Start Ranks of This File*. */

import path from 'node:path';
import * as vscode from 'vscode';
import { Command } from '../constants';
import { isCount, LAUNCH } from '../logic/configurations';

export function registerLaunchCommand(): vscode.Disposable {
  return vscode.commands.registerCommand(Command.launch, launchThisFile);
}

async function launchThisFile(): Promise<void> {
  const file = vscode.window.activeTextEditor?.document;
  if (file?.languageId !== 'python') {
    void vscode.window.showInformationMessage(vscode.l10n.t('Open the Python script that the ranks should run.'));
    return;
  }
  const count = await vscode.window.showInputBox({
    prompt: vscode.l10n.t('How many ranks?'),
    value: '4',
    validateInput: (text) => (isCount(text) ? undefined : vscode.l10n.t('Enter a positive integer.')),
  });
  if (count === undefined) return;
  const folder = vscode.workspace.getWorkspaceFolder(file.uri);
  await vscode.debug.startDebugging(folder, {
    ...LAUNCH,
    name: vscode.l10n.t('{0} ranks of {1}', count, path.basename(file.fileName)),
    program: file.fileName,
    nproc: Number(count),
    cwd: folder?.uri.fsPath ?? path.dirname(file.fileName),
  });
}
