/** The status bar: how many ranks there are and how many are stopped, and the scope of steps. */

import * as vscode from 'vscode';
import { registerCommand, requireSession } from '../commands/registerCommand';
import { Command, View } from '../constants';
import { scopeText } from '../logic/ranks/scopes';
import { countsOf, details, SCOPES, summary, VIEWS, type Choice } from '../logic/ranks/status';
import { countedRanks } from '../logic/ranks/sets';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { themeColor } from './scopeRows';

export function registerStatusBar(sessions: RankSessions): vscode.Disposable {
  const ranks = vscode.window.createStatusBarItem(View.ranks, vscode.StatusBarAlignment.Left, 20);
  const scope = vscode.window.createStatusBarItem(View.scope, vscode.StatusBarAlignment.Left, 19);
  ranks.name = vscode.l10n.t('Ranks');
  ranks.command = Command.pickView;
  scope.name = vscode.l10n.t('Scope of continue, pause and steps');
  scope.command = Command.setScope;
  return vscode.Disposable.from(
    ranks,
    scope,
    sessions.onDidChange(() => {
      update(ranks, scope, sessions.current);
    }),
    registerCommand(Command.setScope, () =>
      pick(sessions, 'scope', [...SCOPES, ...setChoices(sessions)], vscode.l10n.t('Which ranks continue, pause and steps apply to')),
    ),
    registerCommand(Command.pickView, () =>
      pick(sessions, 'view', VIEWS, vscode.l10n.t('How the call stack shows ranks')),
    ),
  );
}

function update(
  ranks: vscode.StatusBarItem,
  scope: vscode.StatusBarItem,
  session: RankSession | undefined,
): void {
  if (!session) {
    ranks.hide();
    scope.hide();
    return;
  }
  const counts = countsOf(session.ranks.all());
  ranks.text = `$(layers) ${summary(counts)}`;
  ranks.tooltip = `${details(counts)}\n${vscode.l10n.t('Click to choose what the call stack shows')}`;
  ranks.accessibilityInformation = {
    label: vscode.l10n.t('{0}. Choose what the call stack shows', summary(counts)),
    role: 'button',
  };
  const { text, detail, hue } = scopeText(session.scope, session.scopes);
  scope.text = `$(target) ${text}`;
  scope.color = themeColor(hue);
  scope.tooltip = `${detail}\n${vscode.l10n.t('Click to change it')}`;
  scope.accessibilityInformation = { label: vscode.l10n.t('{0}. Change it', text), role: 'button' };
  ranks.show();
  scope.show();
}

function setChoices({ current }: RankSessions): Choice[] {
  const sets = current?.scopes.filter(({ set }) => set !== 'all') ?? [];
  return sets.map(({ label, set, ranks }) => ({ value: set, label, detail: `${countedRanks(ranks.length)}: ${set}` }));
}

async function pick(
  sessions: RankSessions,
  setting: 'scope' | 'view',
  choices: readonly Choice[],
  title: string,
): Promise<void> {
  const session = requireSession(sessions);
  const items = choices.map((choice) => ({
    ...choice,
    ...(choice.value === session[setting] ? { description: vscode.l10n.t('current') } : {}),
  }));
  const picked = await vscode.window.showQuickPick(items, { title, matchOnDetail: true });
  if (picked) await session.set(setting, picked.value);
}
