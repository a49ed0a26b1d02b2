/** The sessions of this user that run on this machine. */

import type * as vscode from 'vscode';
import { type RunningSession, sessionsOf } from './logic/sessions';
import { ask, lookForDapMux } from './python';

/** None where dap-mux is not installed: then none of this Python runs here. */
export async function runningSessions(
  folder: vscode.WorkspaceFolder | undefined,
): Promise<RunningSession[]> {
  const command = await lookForDapMux(folder);
  if (!command) return [];
  try {
    return sessionsOf(await ask(command, ['sessions', '--json'], folder));
  } catch {
    return []; // its folder is not ours, say: nothing to offer
  }
}
