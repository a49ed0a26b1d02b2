/** Registers commands whose errors are shown to the user, and finds the session they act on. */

import * as vscode from 'vscode';
import { log } from '../log';
import { rowHasGone } from '../logic/ranks/stackItems';
import { selectedRow } from '../logic/rowWait';
import type { RankSession, RankSessions } from '../ranks/rankSession';

const TOLD_MS = 4000;

/** An error whose message is written for the user. */
export class UserError extends Error {}

/** The session with this id, or else the one that the user works with. Throws UserError. */
export function requireSession(sessions: RankSessions, id?: string): RankSession {
  const session = sessions.find(id) ?? sessions.current;
  if (!session) {
    throw new UserError(vscode.l10n.t('No debug session with ranks is running: start one first.'));
  }
  return session;
}

/** Throws UserError if a row of our view was clicked that was being read anew. */
export function requireRow(args: readonly unknown[]): void {
  if (rowHasGone(args)) throw rowError();
}

/** What a click on a row does: `command` with the selected row, which VS Code may be reading anew. */
export function registerRowCommand(id: string, tree: vscode.TreeView<unknown>, command: string): vscode.Disposable {
  return registerCommand(id, async () => {
    const row = await selectedRow(() => tree.selection);
    if (row === undefined) throw rowError();
    await vscode.commands.executeCommand(command, row);
  });
}

function rowError(): UserError {
  return new UserError(vscode.l10n.t('This row has just changed. Choose it again.'));
}

/** Says for a moment what was done. */
export function tell(what: string): void {
  vscode.window.setStatusBarMessage(what, TOLD_MS);
}

export async function copy(text: string): Promise<void> {
  await vscode.env.clipboard.writeText(text);
  tell(vscode.l10n.t('Copied: {0}', text));
}

/** The thread that the user looks at, if it is of this session. */
export function focusedThread({ debugSession }: RankSession): number | undefined {
  const item = vscode.debug.activeStackItem;
  return item?.session.id === debugSession.id ? item.threadId : undefined;
}

/** Register a command, and show its errors. */
export function registerCommand(
  id: string,
  callback: (...args: unknown[]) => Promise<void> | void,
): vscode.Disposable {
  return vscode.commands.registerCommand(id, async (...args: unknown[]) => {
    try {
      await callback(...args);
    } catch (error) {
      log.error(`${id}: ${String(error)}`);
      void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
    }
  });
}
