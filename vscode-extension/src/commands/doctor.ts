/** The command *Doctor*: shows what is wrong, with the versions and options for a bug report. */

import * as vscode from 'vscode';
import { Command } from '../constants';
import type { Command as DapMux } from '../logic/adapterCommand';
import { outputOf, type Report, REPORTS } from '../logic/doctor';
import { findDapMux, run } from '../python';

export function registerDoctorCommand(context: vscode.ExtensionContext): vscode.Disposable {
  const channel = vscode.window.createOutputChannel('dap-mux: Doctor');
  return vscode.Disposable.from(
    channel,
    vscode.commands.registerCommand(Command.doctor, () => examine(channel, context)),
  );
}

async function examine(
  channel: vscode.OutputChannel,
  context: vscode.ExtensionContext,
): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0];
  const { version } = context.extension.packageJSON as { version: string };
  channel.clear();
  channel.appendLine(`VS Code ${vscode.version}, extension dap-mux ${version}, ${process.platform}`);
  channel.show(true);
  const command = await findDapMux(folder);
  if (!command) {
    channel.appendLine(vscode.l10n.t('No Python with dap-mux was found for this folder.'));
    return;
  }
  for (const report of REPORTS) channel.append(await output(command, report, folder));
}

async function output(
  command: DapMux,
  { args, timeoutMs }: Report,
  folder?: vscode.WorkspaceFolder,
): Promise<string> {
  const commandLine = [...command, ...args].join(' ');
  try {
    return `\n$ ${commandLine}\n${await run(command, args, folder, timeoutMs)}`;
  } catch (error) {
    return `\n$ ${commandLine}\n${outputOf(error)}`;
  }
}
