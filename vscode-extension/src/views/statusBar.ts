/** The status bar: how many ranks there are and stand still, and what a step acts on. */

import * as vscode from 'vscode';
import { details, SCOPES, summary, VIEWS, type Choice } from '../logic/ranks/status';
import { command, liveOf } from './attempt';
import type { Sessions } from './live';

export function registerStatusBar(sessions: Sessions): vscode.Disposable {
  const ranks = vscode.window.createStatusBarItem('dapMux.ranks', vscode.StatusBarAlignment.Left, 20);
  const scope = vscode.window.createStatusBarItem('dapMux.scope', vscode.StatusBarAlignment.Left, 19);
  ranks.name = 'Ranks';
  ranks.command = 'dapMux.pickView';
  scope.name = 'Scope of continue, pause and steps';
  scope.command = 'dapMux.setScope';
  const show = (): void => {
    const live = sessions.current;
    if (!live) {
      ranks.hide();
      scope.hide();
      return;
    }
    const counts = live.ranks.counts();
    ranks.text = `$(layers) ${summary(counts)}`;
    ranks.tooltip = `${details(counts)}\nClick to choose what the call stack shows`;
    ranks.accessibilityInformation = { label: `${summary(counts)}. Choose what the call stack shows`, role: 'button' };
    scope.text = `$(target) scope: ${live.scope}`;
    scope.tooltip = `${detailOf(SCOPES, live.scope)}\nClick to change it`;
    scope.accessibilityInformation = { label: `scope: ${live.scope}. Change it`, role: 'button' };
    ranks.show();
    scope.show();
  };
  return vscode.Disposable.from(
    ranks,
    scope,
    sessions.onDidChange(show),
    command('dapMux.setScope', () => choose(sessions, 'scope', SCOPES, 'What continue, pause and steps act on')),
    command('dapMux.pickView', () => choose(sessions, 'view', VIEWS, 'How the call stack shows ranks')),
  );
}

function detailOf(choices: readonly Choice[], value: string): string {
  return choices.find((choice) => choice.value === value)?.detail ?? value;
}

async function choose(
  sessions: Sessions,
  what: 'scope' | 'view',
  choices: readonly Choice[],
  title: string,
): Promise<void> {
  const live = liveOf(sessions);
  const items = choices.map((choice) => ({
    ...choice,
    ...(choice.value === live[what] ? { description: 'now' } : {}),
  }));
  const chosen = await vscode.window.showQuickPick(items, { title, matchOnDetail: true });
  if (chosen) await live.set(what, chosen.value);
}
