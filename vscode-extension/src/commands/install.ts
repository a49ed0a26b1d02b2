/** The command *Install dap-mux*: puts the wheel that this package contains into the workspace's Python. */

import { readdirSync } from 'node:fs';
import path from 'node:path';
import * as vscode from 'vscode';
import { Command } from '../constants';
import { type Command as CommandLine, installCommand } from '../logic/adapterCommand';
import { pythonToInstallInto } from '../python';
import { registerCommand, UserError } from './registerCommand';

/** `installed` is called each time that pip has succeeded. */
export function registerInstallCommand(
  context: vscode.ExtensionContext,
  installed: () => void,
): vscode.Disposable {
  return registerCommand(Command.install, async (python?: unknown) => {
    const folder = vscode.workspace.workspaceFolders?.[0];
    const into = typeof python === 'string' ? python : await pythonToInstallInto(folder);
    const command = installCommand(into, wheelIn(context.extensionPath));
    const code = await runInTerminal(command, folder);
    if (code !== 0) {
      throw new UserError(vscode.l10n.t('Installing dap-mux for {0} failed; the terminal shows why.', into));
    }
    installed();
    void vscode.window.showInformationMessage(vscode.l10n.t('dap-mux is installed for {0}.', into));
  });
}

/** The wheel of dap-mux that was built with this package. */
function wheelIn(extension: string): string {
  const folder = path.join(extension, 'dist', 'wheel'); // tools/make-wheel
  const [wheel] = readdirSync(folder).filter((name) => name.endsWith('.whl'));
  if (wheel === undefined) throw new UserError(vscode.l10n.t('{0} contains no wheel of dap-mux.', folder));
  return path.join(folder, wheel);
}

/** Runs it where the user sees its output; undefined if it could not be started. */
async function runInTerminal(
  [program, ...args]: CommandLine,
  folder?: vscode.WorkspaceFolder,
): Promise<number | undefined> {
  const task = new vscode.Task(
    { type: 'process' },
    folder ?? vscode.TaskScope.Global,
    vscode.l10n.t('install'),
    'dap-mux',
    new vscode.ProcessExecution(program, args),
  );
  task.presentationOptions = { panel: vscode.TaskPanelKind.Dedicated, showReuseMessage: false };
  const listeners: vscode.Disposable[] = [];
  const isOurs = ({ task: { source, name } }: vscode.TaskExecution): boolean =>
    source === task.source && name === task.name;
  const ended = new Promise<number | undefined>((resolve) => {
    listeners.push(
      vscode.tasks.onDidEndTaskProcess(({ execution, exitCode }) => {
        if (isOurs(execution)) resolve(exitCode);
      }),
      // Alone where no process could be started.
      vscode.tasks.onDidEndTask(({ execution }) => {
        if (isOurs(execution)) resolve(undefined);
      }),
    );
  });
  try {
    await vscode.tasks.executeTask(task);
    return await ended;
  } finally {
    vscode.Disposable.from(...listeners).dispose();
  }
}
