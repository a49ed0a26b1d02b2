/**
 * Debugging without configuration: `dap-mux run` in a terminal of this window announces its session
 * to the window, which joins it. Terminals know our socket, in a folder only this user can enter.
 */

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as vscode from 'vscode';
import { ANNOUNCE_VARIABLE, Setting, SETTINGS } from './constants';
import { isAwaited } from './debug/noSession';
import { log } from './log';
import { attachTo } from './logic/configurations';
import { type Announcement, announcementOf } from './logic/sessions';

const MAX_ANNOUNCEMENT_BYTES = 64 * 1024;
const ANNOUNCEMENT_TIMEOUT_MS = 5_000;

export function registerAnnouncementServer(context: vscode.ExtensionContext): vscode.Disposable {
  if (process.platform === 'win32') return new vscode.Disposable(() => undefined); // no unix sockets
  const terminals = new TerminalVariables(context.environmentVariableCollection);
  terminals.update();
  return vscode.Disposable.from(
    terminals,
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration(`${SETTINGS}.${Setting.announce}`)) terminals.update();
    }),
  );
}

/** Runs the server, and tells this window's terminals about it, while the setting is on. */
class TerminalVariables implements vscode.Disposable {
  private server: Listening | undefined;

  constructor(private readonly variables: vscode.EnvironmentVariableCollection) {
    variables.persistent = false; // the next window has another socket
    variables.description = vscode.l10n.t('Jobs started with `dap-mux run` are debugged in this window');
  }

  update(): void {
    const enabled = vscode.workspace.getConfiguration(SETTINGS).get<boolean>(Setting.announce, true);
    if (enabled === (this.server !== undefined)) return;
    if (!enabled) {
      this.dispose();
      return;
    }
    this.server = listen();
    this.variables.replace(ANNOUNCE_VARIABLE, this.server.path);
  }

  dispose(): void {
    this.variables.delete(ANNOUNCE_VARIABLE);
    this.server?.close();
    this.server = undefined;
  }
}

interface Listening {
  readonly path: string;
  readonly close: () => void;
}

/** Opens a socket that receives announcements: one line for each connection, without a response. */
function listen(): Listening {
  const folder = mkdtempSync(path.join(tmpdir(), 'dap-mux-window-')); // mode 0700
  const file = path.join(folder, 'announce.sock');
  const server = createServer(receive);
  server.on('error', (error) => {
    void vscode.window.showWarningMessage(
      vscode.l10n.t('dap-mux: jobs in terminals cannot be joined automatically: {0}', error.message),
    );
  });
  server.listen(file, () => {
    chmodSync(file, 0o600);
  });
  const close = (): void => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { path: file, close };
}

function receive(socket: Socket): void {
  let text = '';
  socket.setEncoding('utf8');
  socket.setTimeout(ANNOUNCEMENT_TIMEOUT_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('data', (part: string) => {
    text += part;
    const end = text.indexOf('\n');
    if (end < 0 && text.length <= MAX_ANNOUNCEMENT_BYTES) return;
    socket.destroy();
    const announcement = end < 0 ? undefined : parse(text.slice(0, end));
    if (announcement) void join(announcement);
  });
}

function parse(line: string): Announcement | undefined {
  try {
    return announcementOf(line);
  } catch (error) {
    log.warn(`ignored a malformed announcement: ${String(error)}`);
    return undefined;
  }
}

async function join(announcement: Announcement): Promise<void> {
  if (isAwaited(announcement)) return;
  const { folder, name } = announcement;
  const workspace =
    (folder === undefined ? undefined : vscode.workspace.getWorkspaceFolder(vscode.Uri.file(folder))) ??
    vscode.workspace.workspaceFolders?.[0];
  await vscode.debug.startDebugging(workspace, { ...attachTo(announcement, name), name });
}
