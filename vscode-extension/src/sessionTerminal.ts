/** The terminal of this window in which a session's job runs. */

import * as vscode from 'vscode';
import { locateAdapter } from './logic/adapterLocation';
import { isAt } from './logic/sessions';
import { run } from './python';
import { runningSessions } from './runningSessions';

const MAX_ANCESTORS = 32;

/** Undefined for a session that runs elsewhere, and for one that this window has launched. */
export async function terminalOf(session: vscode.DebugSession): Promise<vscode.Terminal | undefined> {
  const location = locateAdapter(session.configuration);
  if (location.kind === 'adapter' || location.kind === 'choose' || !vscode.window.terminals.length) return undefined;
  const running = await runningSessions(session.workspaceFolder);
  const found = running.find((each) => isAt(each, location));
  return found && terminalAbove(found.pid);
}

/** The terminal whose shell is an ancestor of the process. */
async function terminalAbove(process: number): Promise<vscode.Terminal | undefined> {
  const shells = await Promise.all(vscode.window.terminals.map(({ processId }) => processId));
  let pid: number | undefined = process;
  for (let depth = 0; pid !== undefined && pid > 1 && depth < MAX_ANCESTORS; depth++) {
    const index = shells.indexOf(pid);
    if (index >= 0) return vscode.window.terminals[index];
    pid = await parentOf(pid);
  }
  return undefined;
}

async function parentOf(pid: number): Promise<number | undefined> {
  try {
    return Number(await run(['ps'], ['-o', 'ppid=', '-p', String(pid)]));
  } catch {
    return undefined; // it has ended, or there is no such tool
  }
}
