/** The commands *Attach to a Running Session*, *Start Ranks of This File* and *Open the Walkthrough*. */

import path from 'node:path';
import * as vscode from 'vscode';
import { Command, EXTENSION } from '../constants';
import { isCount, LAUNCH, TYPE } from '../logic/configurations';

export function registerStartCommands(): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.commands.registerCommand(Command.attach, async () => {
      const name = vscode.l10n.t('Attach to a running session');
      await vscode.debug.startDebugging(vscode.workspace.workspaceFolders?.[0], { name, type: TYPE, request: 'attach' });
    }),
    vscode.commands.registerCommand(Command.launch, launchThisFile),
    vscode.commands.registerCommand(Command.walkthrough, async () => {
      await vscode.commands.executeCommand('workbench.action.openWalkthrough', `${EXTENSION}#start`);
    }),
  );
}

async function launchThisFile(): Promise<void> {
  const file = await fileToRun();
  if (file === undefined) return;
  const count = await vscode.window.showInputBox({
    prompt: vscode.l10n.t('How many ranks?'),
    value: '4',
    validateInput: (text) => (isCount(text) ? undefined : vscode.l10n.t('Enter a positive integer.')),
  });
  if (count === undefined) return;
  const folder = vscode.workspace.getWorkspaceFolder(file);
  await vscode.debug.startDebugging(folder, {
    ...LAUNCH,
    name: vscode.l10n.t('{0} ranks of {1}', count, path.basename(file.fsPath)),
    program: file.fsPath,
    nproc: Number(count),
    cwd: folder?.uri.fsPath ?? path.dirname(file.fsPath),
  });
}

/** The script in front; behind the walkthrough or another page, the one that is open. */
async function fileToRun(): Promise<vscode.Uri | undefined> {
  const active = vscode.window.activeTextEditor?.document;
  if (active?.languageId === 'python') return active.uri;
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs.map((tab) => tab.input));
  const uris = tabs.flatMap((input) => (input instanceof vscode.TabInputText ? [input.uri] : []));
  const scripts = [...new Set(uris.map((uri) => uri.fsPath).filter((file) => file.endsWith('.py')))];
  const [only, ...others] = scripts;
  if (only === undefined) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Open the Python script that the ranks should run.'));
    return undefined;
  }
  const placeHolder = vscode.l10n.t('Which script should the ranks run?');
  const chosen = others.length ? await vscode.window.showQuickPick(scripts, { placeHolder }) : only;
  return chosen === undefined ? undefined : vscode.Uri.file(chosen);
}
