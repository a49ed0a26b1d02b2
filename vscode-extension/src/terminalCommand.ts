/**
 * The command `dap-mux` in this window's terminals: it runs in the workspace's Python, whose
 * environment need not be active there. It comes last in PATH: an active environment's own wins.
 */

import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as vscode from 'vscode';
import { log } from './log';
import { terminalScript } from './logic/terminalScript';
import { lookForDapMux, pythonToInstallInto } from './python';

/** Writes the command anew, in the background: called again when dap-mux has been installed, which `found` is told. */
export function updateTerminalCommand(context: vscode.ExtensionContext, found: (installed: boolean) => void): void {
  write(context, found).catch((error: unknown) => {
    log.error(`the command dap-mux in terminals: ${String(error)}`);
  });
}

async function write(context: vscode.ExtensionContext, tell: (installed: boolean) => void): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0];
  const found = await lookForDapMux(folder);
  tell(found !== undefined);
  if (process.platform === 'win32') return; // the script is one of sh
  const python = found && found.length > 1 ? found[0] : await pythonToInstallInto(folder);
  const bin = path.join((context.storageUri ?? context.globalStorageUri).fsPath, 'bin');
  const file = path.join(bin, 'dap-mux');
  mkdirSync(bin, { recursive: true });
  writeFileSync(file, terminalScript(python));
  chmodSync(file, 0o755);
  const always = { applyAtProcessCreation: true, applyAtShellIntegration: true }; // a login shell sets its PATH anew
  context.environmentVariableCollection.append('PATH', path.delimiter + bin, always);
}
