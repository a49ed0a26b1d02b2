/** Registers commands whose errors are shown to the user, and finds the session they act on. */

import * as vscode from 'vscode';
import { log } from '../log';
import { rowHasGone } from '../logic/ranks/stackItems';
import type { RankSession, RankSessions } from '../ranks/rankSession';

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
  if (rowHasGone(args)) throw new UserError(vscode.l10n.t('This row has just changed. Choose it again.'));
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
