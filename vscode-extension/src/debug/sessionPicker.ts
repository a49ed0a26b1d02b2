/** Picks one of the sessions that are running on this machine. */

import * as vscode from 'vscode';
import { NotReadyError } from '../logic/adapterLocation';
import { labelOf, type RunningSession, startOf } from '../logic/sessions';
import { runningSessions } from '../runningSessions';

/** Undefined if the user cancels. Throws NotReadyError if no session is running. */
export async function pickRunningSession(
  folder: vscode.WorkspaceFolder | undefined,
): Promise<RunningSession | undefined> {
  const sessions = await runningSessions(folder);
  const [only, ...others] = sessions;
  if (!only) {
    throw new NotReadyError(
      vscode.l10n.t(
        'no dap-mux session is running on this machine. Start a job with "dap-mux run", or set "connect" ' +
          '(for a session elsewhere) or "endpoints" (for its ranks) in launch.json',
      ),
    );
  }
  if (!others.length) return only;
  const items = [...sessions].reverse().map((session) => ({
    label: labelOf(session),
    description: vscode.l10n.t('since {0} · process {1}', startOf(session), session.pid),
    session,
  }));
  const placeHolder = vscode.l10n.t('Attach to which session?');
  return (await vscode.window.showQuickPick(items, { placeHolder }))?.session;
}
