/** Notifications that ranks have died, with the way to the job's output. */

import * as vscode from 'vscode';
import { deathIn, deathMessage } from '../logic/ranks/deaths';
import { Throttler } from '../logic/throttler';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { terminalOf } from '../sessionTerminal';

const COLLECT_MS = 300; // the deaths that follow from one are told with it

type Terminal = Promise<vscode.Terminal | undefined>;

export function registerDeathNotifications(sessions: RankSessions): vscode.Disposable {
  /** Found while the session runs: the processes between it and its terminal end with it. */
  const terminals = new WeakMap<RankSession, Terminal>();
  const pending = new Map<RankSession, string[]>();
  const throttler = new Throttler(() => {
    for (const [session, messages] of pending) void notify(session, messages, terminals.get(session));
    pending.clear();
  }, COLLECT_MS);
  return vscode.Disposable.from(
    throttler,
    sessions.onDidChange(() => {
      const { current } = sessions;
      if (current && !terminals.has(current)) terminals.set(current, terminalOf(current.debugSession));
    }),
    sessions.onDidReceive(({ session, message }) => {
      const death = deathIn(message);
      if (death === undefined) return;
      pending.set(session, [...(pending.get(session) ?? []), death]);
      throttler.schedule();
    }),
  );
}

async function notify(session: RankSession, messages: readonly string[], found: Terminal | undefined): Promise<void> {
  const showLog = vscode.l10n.t('Show Log');
  const text = `${session.debugSession.name}: ${deathMessage(messages)}`;
  if ((await vscode.window.showErrorMessage(text, showLog)) !== showLog) return;
  const terminal = await found;
  if (terminal && !terminal.exitStatus) terminal.show();
  else await vscode.commands.executeCommand('workbench.debug.action.focusRepl');
}
