/** The rows at the top of the Ranks view: what continue, pause and steps can be limited to. */

import * as vscode from 'vscode';
import { Command } from '../constants';
import { colorOf } from '../logic/ranks/hues';
import type { Labels } from '../logic/ranks/labels';
import { isChosen, type ScopeEntry, scopeText } from '../logic/ranks/scopes';
import { countedRanks } from '../logic/ranks/sets';
import type { RankSession } from '../ranks/rankSession';

/** The row above the choices has no `entry`. */
export interface ScopeNode {
  readonly session: RankSession;
  readonly entry: ScopeEntry | undefined;
}

/** Choices are shown once there is one: at one place without named sets there is nothing to choose from. */
const FEWEST = 3;
/** Of so few ranks each has a row below, and VS Code gives the view room for a handful of rows. */
const MOST_FOLDED = 8;

export function isScopeNode(value: unknown): value is ScopeNode {
  return typeof value === 'object' && value !== null && 'entry' in value;
}

export function scopeRoots(session: RankSession): ScopeNode[] {
  const limited = scopeText(session.scope, session.scopes).hue !== undefined;
  return limited || session.scopes.length >= FEWEST ? [{ session, entry: undefined }] : [];
}

export function scopeChildren({ session, entry }: ScopeNode): ScopeNode[] {
  return entry ? [] : session.scopes.map((each) => ({ session, entry: each }));
}

export function themeColor(hue: number | undefined): vscode.ThemeColor | undefined {
  return hue === undefined ? undefined : new vscode.ThemeColor(colorOf(hue));
}

export function itemWith({ label, description, tooltip, spoken }: Labels, state?: vscode.TreeItemCollapsibleState): vscode.TreeItem {
  const item = new vscode.TreeItem(label, state);
  return Object.assign(item, { description, tooltip, accessibilityInformation: { label: spoken } });
}

export function scopeItem({ session, entry }: ScopeNode): vscode.TreeItem {
  const item = entry ? choice(session.scope, entry) : root(session);
  item.id = `${session.debugSession.id} scope ${entry?.key ?? ''}`;
  return item;
}

function root(session: RankSession): vscode.TreeItem {
  const { text, detail, hue } = scopeText(session.scope, session.scopes);
  const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const folded = session.ranks.all().length <= MOST_FOLDED;
  const spoken = vscode.l10n.t('Scope of continue, pause and steps: {0}', text);
  const labels = { label: vscode.l10n.t('Scope'), description: text.replace(/^scope: /, ''), tooltip: detail, spoken };
  const item = itemWith(labels, folded ? Collapsed : Expanded);
  item.iconPath = new vscode.ThemeIcon('target', themeColor(hue));
  item.contextValue = 'scope';
  return item;
}

function choice(scope: string, entry: ScopeEntry): vscode.TreeItem {
  const chosen = isChosen(scope, entry);
  const count = countedRanks(entry.ranks.length);
  const tooltip = vscode.l10n.t('{0}: {1}\nClick: continue, pause and steps apply to these ranks; once more: as before', count, entry.set);
  const spoken = ['Scope', entry.label, count, chosen ? vscode.l10n.t('in force') : ''].filter(Boolean).join(', ');
  const item = itemWith({ label: entry.label, description: `${entry.ranks.length}`, tooltip, spoken });
  item.iconPath = new vscode.ThemeIcon(chosen ? 'circle-filled' : 'circle-outline', themeColor(entry.hue));
  item.contextValue = 'scope.entry';
  item.command = { command: Command.scopeRow, title: vscode.l10n.t('Set Scope') };
  return item;
}
