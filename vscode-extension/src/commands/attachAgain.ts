/** After a quick fix has written a path mapping: it takes effect at the next attach. */

import * as vscode from 'vscode';
import { eventAfter } from '../events';
import { log } from '../log';
import { mayAttachAgain } from '../logic/configurations';
import type { RankSessions } from '../ranks/rankSession';

const EVENT_TIMEOUT_MS = 5_000;

/** `args`: the name of the configuration that has the mapping now. */
export async function offerToAttachAgain(sessions: RankSessions, args: readonly unknown[]): Promise<void> {
  const name = String(args[0]);
  const session = sessions.current?.debugSession;
  const message = vscode.l10n.t(
    'The path mapping was added to "{0}" in launch.json. It takes effect at the next start of that configuration.',
    name,
  );
  if (!session || !mayAttachAgain(session.configuration)) {
    void vscode.window.showInformationMessage(message);
    return;
  }
  const button = vscode.l10n.t('Attach Again');
  if ((await vscode.window.showInformationMessage(message, button)) === button) await attachAgain(session, name);
}

async function attachAgain(session: vscode.DebugSession, name: string): Promise<void> {
  const folder = session.workspaceFolder ?? vscode.workspace.workspaceFolders?.[0];
  await saveLaunchJson(folder);
  await ended(session);
  await vscode.debug.startDebugging(folder, name);
}

/** End it, and wait until VS Code has forgotten it: it asks before it starts a second one of a name. */
async function ended(session: vscode.DebugSession): Promise<void> {
  const isItsEnd = ({ id }: vscode.DebugSession): boolean => id === session.id;
  await eventAfter(() => vscode.debug.stopDebugging(session), vscode.debug.onDidTerminateDebugSession, isItsEnd, EVENT_TIMEOUT_MS);
}

/** Save it, and wait until VS Code has read it again: until then it starts the configuration as it was. */
async function saveLaunchJson(folder: vscode.WorkspaceFolder | undefined): Promise<void> {
  if (!folder) return;
  const uri = vscode.Uri.joinPath(folder.uri, '.vscode', 'launch.json').toString();
  const changed = vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri && each.isDirty);
  if (!changed) return;
  const isOfIt = (change: vscode.ConfigurationChangeEvent): boolean => change.affectsConfiguration('launch', folder);
  const reloaded = await eventAfter(() => changed.save(), vscode.workspace.onDidChangeConfiguration, isOfIt, EVENT_TIMEOUT_MS);
  if (!reloaded) log.warn('VS Code has not read the saved launch.json again');
}
