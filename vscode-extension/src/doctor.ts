/** The command *Doctor*: what this window knows about dap-mux here, to read and to pass on. */

import * as vscode from 'vscode';
import type { Command } from './logic/adapterCommand';
import { type Question, QUESTIONS, said } from './logic/doctor';
import { ask, findDapMux } from './python';

export function registerDoctor(context: vscode.ExtensionContext): void {
  const channel = vscode.window.createOutputChannel('dap-mux');
  context.subscriptions.push(
    channel,
    vscode.commands.registerCommand('dapMux.doctor', () => examine(channel, context)),
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
    channel.appendLine('No Python with dap-mux was found for this folder.');
    return;
  }
  for (const question of QUESTIONS) channel.append(await answer(command, question, folder));
}

async function answer(
  command: Command,
  { words, limit }: Question,
  folder?: vscode.WorkspaceFolder,
): Promise<string> {
  const asked = [...command, ...words].join(' ');
  try {
    return `\n$ ${asked}\n${await ask(command, words, folder, limit)}`;
  } catch (error) {
    return `\n$ ${asked}\n${said(error)}`;
  }
}
