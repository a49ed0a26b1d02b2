/** What commands share: the session they are for, and how they fail. */

import * as vscode from 'vscode';
import type { Live, Sessions } from './live';

/** Something the user should be told in these words. */
export class Problem extends Error {}

export function liveOf(sessions: Sessions, id?: string): Live {
  const live = sessions.find(id) ?? sessions.current;
  if (!live) throw new Problem('No debug session with ranks is running. Start one, then try again.');
  return live;
}

/** Register a command; what goes wrong in it is shown, not lost. */
export function command(id: string, work: (...args: unknown[]) => Promise<void> | void): vscode.Disposable {
  return vscode.commands.registerCommand(id, async (...args: unknown[]) => {
    try {
      await work(...args);
    } catch (error) {
      void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
    }
  });
}
