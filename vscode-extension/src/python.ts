/** Finds a Python with dap-mux in it, and offers to install it where there is none. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import { candidates, type Command, installWords } from './logic/adapterCommand';

const PROBE_LIMIT = 20_000; // ms: a cold Python on a busy network disk
const execute = promisify(execFile);

/** What the Python extension offers to others, as far as we ask. */
interface PythonExtension {
  environments?: { getActiveEnvironmentPath?: (resource?: vscode.Uri) => { path?: string } };
}

/** The first command with dap-mux behind it; undefined, and the user asked, where none has it. */
export async function findDapMux(
  folder: vscode.WorkspaceFolder | undefined,
  attribute?: unknown,
): Promise<Command | undefined> {
  const tried = await commands(folder, attribute);
  for (const command of tried) if (await answers(command, folder)) return command;
  void offerToInstall(tried, folder);
  return undefined;
}

/** The same without a word to the user. */
export async function lookForDapMux(
  folder: vscode.WorkspaceFolder | undefined,
): Promise<Command | undefined> {
  for (const command of await commands(folder)) if (await answers(command, folder)) return command;
  return undefined;
}

/** Run one of its commands, without input, and return what it prints; throws where it fails. */
export async function ask(
  command: Command,
  words: readonly string[],
  folder?: vscode.WorkspaceFolder,
  limit = PROBE_LIMIT,
): Promise<string> {
  const [program, ...first] = command;
  const options = { timeout: limit, ...(folder ? { cwd: folder.uri.fsPath } : {}) };
  const running = execute(program, [...first, ...words], options);
  running.child.stdin?.end();
  return (await running).stdout;
}

async function commands(
  folder: vscode.WorkspaceFolder | undefined,
  attribute?: unknown,
): Promise<Command[]> {
  return candidates({
    attribute: typeof attribute === 'string' ? attribute : undefined,
    extension: await ofPythonExtension(folder),
    setting: ofSetting(folder),
    environment: ofFolder(folder),
  });
}

async function answers(command: Command, folder?: vscode.WorkspaceFolder): Promise<boolean> {
  try {
    return (await ask(command, ['--version'], folder)).includes('dap-mux');
  } catch {
    return false; // no such program, or no dap-mux in it: the next one may have it
  }
}

async function ofPythonExtension(folder?: vscode.WorkspaceFolder): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension>('ms-python.python');
  if (!extension) return undefined;
  try {
    const api = extension.isActive ? extension.exports : await extension.activate();
    return api.environments?.getActiveEnvironmentPath?.(folder?.uri).path;
  } catch {
    return undefined; // somebody else's extension has failed; it has told the user itself
  }
}

/** Where somebody has set it: its default is the bare word `python`, which comes last anyway. */
function ofSetting(folder?: vscode.WorkspaceFolder): string | undefined {
  const settings = vscode.workspace.getConfiguration('python', folder?.uri);
  const value = settings.get<string>('defaultInterpreterPath');
  if (!value || value === 'python') return undefined;
  return value.replaceAll('${workspaceFolder}', folder?.uri.fsPath ?? '.');
}

function ofFolder(folder?: vscode.WorkspaceFolder): string | undefined {
  if (!folder) return undefined;
  const inside = process.platform === 'win32' ? ['Scripts', 'python.exe'] : ['bin', 'python'];
  return ['.venv', 'venv']
    .map((name) => path.join(folder.uri.fsPath, name, ...inside))
    .find((file) => existsSync(file));
}

/** Nothing is installed unasked, and the user sees what is. */
async function offerToInstall(
  tried: readonly Command[],
  folder?: vscode.WorkspaceFolder,
): Promise<void> {
  const words = installWords(tried);
  const install = 'Install in a Terminal';
  const chosen = await vscode.window.showErrorMessage(
    `dap-mux is not installed for ${words[0] ?? 'Python'}: ${words.join(' ')}. ` +
      'Another Python is chosen by "python" in launch.json.',
    install,
  );
  if (chosen === install) installInTerminal(words, folder);
}

function installInTerminal(words: readonly string[], folder?: vscode.WorkspaceFolder): void {
  const terminal = vscode.window.createTerminal({
    name: 'dap-mux: install',
    ...(folder ? { cwd: folder.uri } : {}),
  });
  terminal.show();
  terminal.sendText(words.map(quoted).join(' '));
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
