/** Finds a Python with dap-mux installed, or offers to install it. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import { Command as CommandId } from './constants';
import { log } from './log';
import { candidates, type Command, installPython } from './logic/adapterCommand';

const PROBE_TIMEOUT_MS = 20_000; // a cold Python on a slow network disk
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024; // all pods of a namespace
const execute = promisify(execFile);

/** The part of the Python extension's API that we use. */
interface PythonExtension {
  environments?: { getActiveEnvironmentPath?: (resource?: vscode.Uri) => { path?: string } };
}

/** The first command that runs dap-mux; if there is none, offer to install it. */
export async function findDapMux(
  folder: vscode.WorkspaceFolder | undefined,
  attribute?: unknown,
): Promise<Command | undefined> {
  const found = await lookForDapMux(folder, attribute);
  if (!found) void offerToInstall(await pythonToInstallInto(folder, attribute));
  return found;
}

/** The same without an offer to install it. */
export async function lookForDapMux(
  folder: vscode.WorkspaceFolder | undefined,
  attribute?: unknown,
): Promise<Command | undefined> {
  for (const command of await commands(folder, attribute)) if (await runsDapMux(command, folder)) return command;
  return undefined;
}

/** Run it without input and return its output; throws if it fails. */
export async function run(
  command: Command,
  args: readonly string[],
  folder?: vscode.WorkspaceFolder,
  timeoutMs = PROBE_TIMEOUT_MS,
): Promise<string> {
  const [program, ...first] = command;
  const options = { timeout: timeoutMs, maxBuffer: MAX_OUTPUT_BYTES, ...(folder ? { cwd: folder.uri.fsPath } : {}) };
  const running = execute(program, [...first, ...args], options);
  running.child.stdin?.end();
  return (await running).stdout;
}

async function commands(
  folder: vscode.WorkspaceFolder | undefined,
  attribute?: unknown,
): Promise<Command[]> {
  return candidates({
    attribute: typeof attribute === 'string' ? attribute : undefined,
    extension: await fromPythonExtension(folder),
    setting: fromSetting(folder),
    environment: fromFolder(folder),
  });
}

async function runsDapMux(command: Command, folder?: vscode.WorkspaceFolder): Promise<boolean> {
  try {
    return (await run(command, ['--version'], folder)).includes('dap-mux');
  } catch (error) {
    log.debug(`no dap-mux: ${command.join(' ')}: ${String(error)}`);
    return false; // the next candidate may have it
  }
}

async function fromPythonExtension(folder?: vscode.WorkspaceFolder): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension>('ms-python.python');
  if (!extension) return undefined;
  try {
    const api = extension.isActive ? extension.exports : await extension.activate();
    return api.environments?.getActiveEnvironmentPath?.(folder?.uri).path;
  } catch (error) {
    log.warn(`the Python extension failed: ${String(error)}`);
    return undefined;
  }
}

/** Unless it is the default, `python`, which is the last candidate anyway. */
function fromSetting(folder?: vscode.WorkspaceFolder): string | undefined {
  const settings = vscode.workspace.getConfiguration('python', folder?.uri);
  const value = settings.get<string>('defaultInterpreterPath');
  if (!value || value === 'python') return undefined;
  return value.replaceAll('${workspaceFolder}', folder?.uri.fsPath ?? '.');
}

function fromFolder(folder?: vscode.WorkspaceFolder): string | undefined {
  if (!folder) return undefined;
  const inside = process.platform === 'win32' ? ['Scripts', 'python.exe'] : ['bin', 'python'];
  return ['.venv', 'venv']
    .map((name) => path.join(folder.uri.fsPath, name, ...inside))
    .find((file) => existsSync(file));
}

/** The Python into which dap-mux is installed: the first in which it is looked for. */
export async function pythonToInstallInto(folder?: vscode.WorkspaceFolder, attribute?: unknown): Promise<string> {
  return installPython(await commands(folder, attribute));
}

/** Installs only with the user's consent. */
async function offerToInstall(python: string): Promise<void> {
  const install = vscode.l10n.t('Install in a Terminal');
  const chosen = await vscode.window.showErrorMessage(
    vscode.l10n.t(
      'dap-mux is not installed for {0}. To use another Python, select its interpreter, or set "python" in launch.json.',
      python,
    ),
    install,
  );
  if (chosen === install) await vscode.commands.executeCommand(CommandId.install, python);
}
