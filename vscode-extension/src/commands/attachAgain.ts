/** After a quick fix has written a path mapping: it takes effect at the next attach. */

import * as vscode from 'vscode';
import { log } from '../log';
import { mayAttachAgain } from '../logic/attachAgain';
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
  await eventAfter(
    () => vscode.debug.stopDebugging(session),
    (done) =>
      vscode.debug.onDidTerminateDebugSession(({ id }) => {
        if (id === session.id) done();
      }),
  );
}

/** Save it, and wait until VS Code has read it again: until then it starts the configuration as it was. */
async function saveLaunchJson(folder: vscode.WorkspaceFolder | undefined): Promise<void> {
  if (!folder) return;
  const uri = vscode.Uri.joinPath(folder.uri, '.vscode', 'launch.json').toString();
  const changed = vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri && each.isDirty);
  if (!changed) return;
  const reloaded = await eventAfter(
    () => changed.save(),
    (done) =>
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration('launch', folder)) done();
      }),
  );
  if (!reloaded) log.warn('VS Code has not read the saved launch.json again');
}

/** Act, and wait for the event that follows; false if it does not come in time. */
async function eventAfter(
  act: () => Thenable<unknown>,
  listen: (done: () => void) => vscode.Disposable,
): Promise<boolean> {
  let finish: (came: boolean) => void = () => undefined;
  const came = new Promise<boolean>((resolve) => (finish = resolve));
  const subscription = listen(() => {
    finish(true);
  });
  await act();
  const timer = setTimeout(finish, EVENT_TIMEOUT_MS, false);
  try {
    return await came;
  } finally {
    clearTimeout(timer);
    subscription.dispose();
  }
}
