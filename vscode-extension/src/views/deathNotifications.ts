/** Notifications that ranks have died, with the way to the job's output. */

import * as vscode from 'vscode';
import { deathIn, deathMessage } from '../logic/ranks/deaths';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { terminalOf } from '../sessionTerminal';

const COLLECT_MS = 300; // the deaths that follow from one are told with it

type Terminal = Promise<vscode.Terminal | undefined>;

export class DeathNotifications implements vscode.Disposable {
  /** Found while the session runs: the processes between it and its terminal end with it. */
  private readonly terminals = new WeakMap<RankSession, Terminal>();
  private readonly pending = new Map<RankSession, string[]>();
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly listeners: vscode.Disposable;

  constructor(sessions: RankSessions) {
    this.listeners = vscode.Disposable.from(
      sessions.onDidChange(() => {
        const { current } = sessions;
        if (current && !this.terminals.has(current)) this.terminals.set(current, terminalOf(current.debugSession));
      }),
      sessions.onDidReceive(({ session, message }) => {
        const death = deathIn(message);
        if (death !== undefined) this.collect(session, death);
      }),
    );
  }

  private collect(session: RankSession, message: string): void {
    const messages = this.pending.get(session);
    if (messages) {
      messages.push(message);
      return;
    }
    this.pending.set(session, [message]);
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      void this.notify(session);
    }, COLLECT_MS);
    this.timers.add(timer);
  }

  private async notify(session: RankSession): Promise<void> {
    const messages = this.pending.get(session) ?? [];
    this.pending.delete(session);
    const showLog = vscode.l10n.t('Show Log');
    const text = `${session.debugSession.name}: ${deathMessage(messages)}`;
    if ((await vscode.window.showErrorMessage(text, showLog)) !== showLog) return;
    const terminal = await this.terminals.get(session);
    if (terminal && !terminal.exitStatus) terminal.show();
    else await vscode.commands.executeCommand('workbench.debug.action.focusRepl');
  }

  dispose(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.listeners.dispose();
  }
}
