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
  const item = (id: string, priority: number, name: string, command: string): vscode.StatusBarItem =>
    Object.assign(vscode.window.createStatusBarItem(id, vscode.StatusBarAlignment.Left, priority), { name, command });
  const ranks = item(View.ranks, 20, vscode.l10n.t('Ranks'), Command.pickView);
  // apart from the text, which would be hard to read in some hues: themes colour the bar while one debugs
  const hue = item(View.scopeHue, 19.5, vscode.l10n.t('Colour of the scope'), Command.setScope);
  const scope = item(View.scope, 19, vscode.l10n.t('Scope of continue, pause and steps'), Command.setScope);
  const items = { ranks, hue, scope };
  hue.text = '$(circle-large-filled)';
  return vscode.Disposable.from(
    ...Object.values(items),
    sessions.onDidChange(() => {
      update(items, sessions.current);
    }),
    registerCommand(Command.setScope, () =>
      pick(sessions, 'scope', [...SCOPES, ...setChoices(sessions)], vscode.l10n.t('Which ranks continue, pause and steps apply to')),
    ),
    registerCommand(Command.pickView, () =>
      pick(sessions, 'view', VIEWS, vscode.l10n.t('How the call stack shows ranks')),
    ),
  );
}

function update(items: Readonly<Record<'ranks' | 'hue' | 'scope', vscode.StatusBarItem>>, session: RankSession | undefined): void {
  if (!session) {
    for (const item of Object.values(items)) item.hide();
    return;
  }
  const { ranks, scope } = items;
  const counts = countsOf(session.ranks.all());
  ranks.text = `$(layers) ${summary(counts)}`;
  ranks.tooltip = `${details(counts)}\n${vscode.l10n.t('Click to choose what the call stack shows')}`;
  ranks.accessibilityInformation = {
    label: vscode.l10n.t('{0}. Choose what the call stack shows', summary(counts)),
    role: 'button',
  };
  const { text, detail, hue } = scopeText(session.scope, session.scopes);
  scope.text = `$(target) ${text}`;
  scope.tooltip = `${detail}\n${vscode.l10n.t('Click to change it')}`;
  scope.accessibilityInformation = { label: vscode.l10n.t('{0}. Change it', text), role: 'button' };
  items.hue.color = themeColor(hue);
  items.hue.accessibilityInformation = scope.accessibilityInformation;
  ranks.show();
  scope.show();
  if (hue === undefined) items.hue.hide();
  else items.hue.show();
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
