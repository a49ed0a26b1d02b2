/** The rows at the top of the Ranks view: what continue, pause and steps can be limited to. */

import * as vscode from 'vscode';
import { Command } from '../constants';
import { colorOf } from '../logic/ranks/hues';
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

export function scopeItem({ session, entry }: ScopeNode): vscode.TreeItem {
  const item = entry ? choice(session.scope, entry) : root(session);
  item.id = `${session.debugSession.id} scope ${entry?.key ?? ''}`;
  return item;
}

function root(session: RankSession): vscode.TreeItem {
  const { text, detail, hue } = scopeText(session.scope, session.scopes);
  const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const folded = session.ranks.all().length <= MOST_FOLDED;
  const item = new vscode.TreeItem(vscode.l10n.t('Scope'), folded ? Collapsed : Expanded);
  item.description = text.replace(/^scope: /, '');
  item.tooltip = detail;
  item.iconPath = new vscode.ThemeIcon('target', themeColor(hue));
  item.accessibilityInformation = { label: vscode.l10n.t('Scope of continue, pause and steps: {0}', text) };
  item.contextValue = 'scope';
  return item;
}

function choice(scope: string, entry: ScopeEntry): vscode.TreeItem {
  const chosen = isChosen(scope, entry);
  const count = countedRanks(entry.ranks.length);
  const item = new vscode.TreeItem(entry.label);
  item.description = `${entry.ranks.length}`;
  item.tooltip = vscode.l10n.t('{0}: {1}\nClick: continue, pause and steps apply to these ranks; once more: as before', count, entry.set);
  item.iconPath = new vscode.ThemeIcon(chosen ? 'circle-filled' : 'circle-outline', themeColor(entry.hue));
  const state = chosen ? vscode.l10n.t('in force') : '';
  item.accessibilityInformation = { label: ['Scope', entry.label, count, state].filter(Boolean).join(', ') };
  item.contextValue = 'scope.entry';
  item.command = { command: Command.scopeRow, title: vscode.l10n.t('Set Scope') };
  return item;
}
