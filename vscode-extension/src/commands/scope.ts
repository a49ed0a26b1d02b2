/** Keys: the scope as the n-th class, the focus to the next class or to the outlier. */

import * as vscode from 'vscode';
import { Command } from '../constants';
import { HUES } from '../logic/ranks/hues';
import type { Row } from '../logic/ranks/rows';
import { neighbour, outlier, type ScopeEntry, toggled } from '../logic/ranks/scopes';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { focus } from './control';
import { focusedThread, registerCommand, requireSession, UserError } from './registerCommand';

export async function choose(session: RankSession, entry: ScopeEntry | undefined): Promise<void> {
  if (!entry) throw new UserError(vscode.l10n.t('No class of ranks and no named set has this number now.'));
  await session.set('scope', toggled(session.scope, entry));
}

async function look(session: RankSession, row: Row | undefined): Promise<void> {
  if (!row) throw new UserError(vscode.l10n.t('No rank is stopped.'));
  await focus(session, row);
}

function go(sessions: RankSessions, step: 1 | -1): Promise<void> {
  const session = requireSession(sessions);
  return look(session, neighbour(session.ranks.all(), session.hues, focusedThread(session), step));
}

export function registerScopeCommands(sessions: RankSessions): vscode.Disposable {
  const scoped = (id: string, find: (entry: ScopeEntry) => boolean): vscode.Disposable =>
    registerCommand(id, () => {
      const session = requireSession(sessions);
      return choose(session, session.scopes.find(find));
    });
  return vscode.Disposable.from(
    scoped(Command.scopeAll, ({ set }) => set === 'all'),
    ...HUES.map((hue) => scoped(`${Command.scopeOf}${hue}`, (entry) => entry.hue === hue)),
    registerCommand(Command.nextClass, () => go(sessions, 1)),
    registerCommand(Command.previousClass, () => go(sessions, -1)),
    registerCommand(Command.focusOutlier, () => {
      const session = requireSession(sessions);
      return look(session, outlier(session.ranks.all()));
    }),
  );
}
