/**
 * *Run All Ranks Here*: those that are elsewhere run on to the cursor's line, where others are stopped.
 *
 * Only the language server knows at which line a rank stands in a text that was edited since, so it is
 * asked for its code lenses. They are not shown: a lens moves the text below it with every stop.
 */

import * as vscode from 'vscode';
import { CodeLensRequest, ExecuteCommandRequest, type LanguageClient } from 'vscode-languageclient/node';
import { Command, RUN_ALL_HERE } from '../constants';
import { registerCommand, UserError } from './registerCommand';

export function registerRunAllHere(client: LanguageClient): vscode.Disposable {
  return registerCommand(Command.runAllHere, () => runAllHere(client));
}

async function runAllHere(client: LanguageClient): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor) throw new UserError(vscode.l10n.t('Place the cursor in a line where a rank is stopped.'));
  const { document, selection } = editor;
  const textDocument = client.code2ProtocolConverter.asTextDocumentIdentifier(document);
  const lenses = (await client.sendRequest(CodeLensRequest.type, { textDocument })) ?? [];
  const { line } = selection.active;
  const here = lenses.find(({ range, command }) => range.start.line === line && command?.command === RUN_ALL_HERE);
  if (!here?.command) {
    throw new UserError(vscode.l10n.t('No rank is stopped at line {0}, or all ranks are.', line + 1));
  }
  const { command, arguments: args = [] } = here.command;
  await client.sendRequest(ExecuteCommandRequest.type, { command, arguments: args as unknown[] });
}
