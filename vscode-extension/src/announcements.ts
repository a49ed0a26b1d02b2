/**
 * The no-config start: `dap-mux run` in a terminal of this window tells the window which session to
 * join. Every terminal knows a socket of ours, in a folder that is this user's alone.
 */

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as vscode from 'vscode';
import { attachTo } from './logic/configurations';
import { type Announcement, announcementOf } from './logic/sessions';

const VARIABLE = 'DAP_MUX_ANNOUNCE'; // dap_mux/session/announcing.py
const SETTING = 'announce';
const LONGEST = 64 * 1024; // bytes
const LIMIT = 5_000; // ms for one announcement

export function listenForAnnouncements(context: vscode.ExtensionContext): void {
  if (process.platform === 'win32') return; // no sockets with an owner there
  const terminals = new Terminals(context.environmentVariableCollection);
  terminals.heed();
  context.subscriptions.push(
    terminals,
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration(`dapMux.${SETTING}`)) terminals.heed();
    }),
  );
}

/** What the terminals of this window are told, while the setting says so. */
class Terminals implements vscode.Disposable {
  private ear: Ear | undefined;

  constructor(private readonly variables: vscode.EnvironmentVariableCollection) {
    variables.persistent = false; // the next window has another socket
    variables.description = 'Jobs started with `dap-mux run` are debugged in this window';
  }

  heed(): void {
    const wanted = vscode.workspace.getConfiguration('dapMux').get<boolean>(SETTING, true);
    if (wanted === (this.ear !== undefined)) return;
    if (!wanted) {
      this.dispose();
      return;
    }
    this.ear = new Ear((announcement) => void join(announcement));
    this.variables.replace(VARIABLE, this.ear.path);
  }

  dispose(): void {
    this.variables.delete(VARIABLE);
    this.ear?.close();
    this.ear = undefined;
  }
}

/** A socket that takes announcements: one line each, no answer. */
class Ear {
  readonly path: string;
  private readonly folder = mkdtempSync(path.join(tmpdir(), 'dap-mux-window-')); // mode 0700
  private readonly server: Server;

  constructor(heard: (announcement: Announcement) => void) {
    this.path = path.join(this.folder, 'announce.sock');
    this.server = createServer((socket) => {
      listen(socket, heard);
    });
    this.server.on('error', (error) => {
      void vscode.window.showWarningMessage(
        `dap-mux: jobs in terminals cannot be joined by themselves: ${error.message}`,
      );
    });
    this.server.listen(this.path, () => {
      chmodSync(this.path, 0o600);
    });
  }

  close(): void {
    this.server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function listen(socket: Socket, heard: (announcement: Announcement) => void): void {
  let text = '';
  socket.setEncoding('utf8');
  socket.setTimeout(LIMIT, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('data', (part: string) => {
    text += part;
    const end = text.indexOf('\n');
    if (end < 0 && text.length <= LONGEST) return;
    socket.destroy();
    const announcement = end < 0 ? undefined : understood(text.slice(0, end));
    if (announcement) heard(announcement);
  });
}

function understood(line: string): Announcement | undefined {
  try {
    return announcementOf(line);
  } catch {
    return undefined; // whoever it was, it was no job of ours
  }
}

async function join(announcement: Announcement): Promise<void> {
  const { folder, name } = announcement;
  const workspace =
    (folder === undefined ? undefined : vscode.workspace.getWorkspaceFolder(vscode.Uri.file(folder))) ??
    vscode.workspace.workspaceFolders?.[0];
  await vscode.debug.startDebugging(workspace, { ...attachTo(announcement, name), name });
}
