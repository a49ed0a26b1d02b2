/** This user's sessions that are running on this machine. */

import type * as vscode from 'vscode';
import { log } from './log';
import { type RunningSession, sessionsOf } from './logic/sessions';
import { lookForDapMux, run } from './python';

/** Empty if dap-mux is not installed. `python`: the attribute of a configuration. */
export async function runningSessions(
  folder: vscode.WorkspaceFolder | undefined,
  python?: unknown,
): Promise<RunningSession[]> {
  const command = await lookForDapMux(folder, python);
  if (!command) return [];
  try {
    return sessionsOf(await run(command, ['sessions', '--json'], folder));
  } catch (error) {
    log.warn(`cannot list running sessions: ${String(error)}`); // its folder may not be ours
    return [];
  }
}
