/** The Ranks view: classes of ranks at the same place, and their ranks below. */

import * as vscode from 'vscode';
import { registerCommand, registerRowCommand } from '../commands/registerCommand';
import { Command, ContextKey, View } from '../constants';
import { bundlesOf, classesOf, classKey, conditionOf, type RankClass } from '../logic/ranks/classes';
import { search } from '../logic/ranks/filter';
import { hueOfRow } from '../logic/ranks/hues';
import { bundleLabels, classLabels, type Labels, rankLabels } from '../logic/ranks/labels';
import { keyOf, severalGroups, type Row } from '../logic/ranks/rows';
import { toggled, unionOf } from '../logic/ranks/scopes';
import { countedRanks } from '../logic/ranks/sets';
import { countsOf, summary } from '../logic/ranks/status';
import { RefreshGate } from '../logic/refreshGate';
import { selectedRow } from '../logic/rowWait';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { isScopeNode, itemWith, scopeChildren, scopeItem, type ScopeNode, scopeRoots, themeColor } from './scopeRows';

/** A row of the view: one rank, a bundle of a long list, or a class of ranks. */
export interface Node {
  readonly session: RankSession;
  readonly rows: readonly Row[];
  readonly rankClass: RankClass | undefined;
}

type AnyNode = Node | ScopeNode;

const OPENED = 'ranks view opened'; // in the workspace's memory
const MAX_ATTEMPTS = 5; // the user may have hidden the view
const MAX_EXPANDED_RANKS = 8; // larger classes are collapsed at first
const ICONS: Readonly<Record<string, readonly [string, string?]>> = {
  dead: ['error', 'testing.iconFailed'],
  exception: ['error', 'list.errorForeground'],
  stopped: ['debug-pause', 'charts.yellow'],
  pausing: ['debug-pause', 'disabledForeground'],
  running: ['debug-start', 'charts.green'],
  connecting: ['plug'],
  waiting: ['watch'],
  lost: ['debug-disconnect', 'list.warningForeground'],
  exited: ['circle-slash'],
};

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'session' in value && 'rows' in value;
}

function collapsibleState({ rows }: RankClass): vscode.TreeItemCollapsibleState {
  const { Expanded, Collapsed } = vscode.TreeItemCollapsibleState;
  return rows.length <= MAX_EXPANDED_RANKS ? Expanded : Collapsed;
}

/** A class looks like its first rank: all of its ranks are in the same state. `color`: of their class. */
function itemOf(kind: 'class' | 'rank', labels: Labels, row: Row, color?: vscode.ThemeColor): vscode.TreeItem {
  const item = itemWith(labels);
  const [icon, usual] = ICONS[conditionOf(row)] ?? ['question'];
  item.contextValue = `${kind}.${row.state}`;
  item.iconPath = new vscode.ThemeIcon(icon, color ?? (usual === undefined ? undefined : new vscode.ThemeColor(usual)));
  return item;
}

function labelsOf({ rows, rankClass }: Node, row: Row, several: boolean): Labels {
  if (rankClass) return classLabels(rankClass, several);
  return rows.length > 1 ? bundleLabels(rows) : rankLabels(row, several);
}

function keyOfNode({ rows, rankClass }: Node, row: Row): string {
  if (rankClass) return rankClass.key;
  return rows.length > 1 ? `${classKey(row)} from ${keyOf(row)}` : keyOf(row);
}

/** Of a class with many ranks bundles, of a bundle and any other class ranks. */
function childrenOf({ session, rows, rankClass }: Node): Node[] {
  const parts = rankClass ? bundlesOf(rows) : rows.map((row) => [row]);
  return parts.map((members) => ({ session, rows: members, rankClass: undefined }));
}

export class RanksTree implements vscode.TreeDataProvider<AnyNode>, vscode.Disposable {
  private readonly emitter = new vscode.EventEmitter<undefined>();
  private readonly gate = new RefreshGate(
    () => {
      this.emitter.fire(undefined);
    },
    () => this.layOut(),
  );
  private readonly tree: vscode.TreeView<AnyNode>;
  private readonly disposables: vscode.Disposable[];
  private filter = '';
  private shown = '';
  private attempts = 0;
  private laidOut = false; // since the view was shown last
  readonly onDidChangeTreeData = this.emitter.event;

  constructor(
    private readonly sessions: RankSessions,
    private readonly memory: vscode.Memento,
  ) {
    this.tree = vscode.window.createTreeView(View.ranks, { treeDataProvider: this, canSelectMany: true });
    this.disposables = [
      this.tree,
      this.tree.onDidChangeVisibility(() => {
        this.laidOut = false;
        this.gate.read();
      }),
      sessions.onDidChange(() => {
        this.refresh();
      }),
      this.tree.onDidChangeSelection(({ selection }) => {
        this.unite(selection);
      }),
      registerRowCommand(Command.openRow, this.tree, Command.focus),
      registerCommand(Command.scopeRow, () => this.setScope()),
      registerCommand(Command.searchRanks, () => {
        this.search();
      }),
      registerCommand(Command.clearSearch, () => {
        this.show('');
      }),
    ];
  }

  /** The selected rows of the view. */
  get selection(): readonly Node[] {
    return this.tree.selection.filter(isNode);
  }

  getChildren(node?: AnyNode): AnyNode[] {
    this.gate.read();
    if (isScopeNode(node)) return scopeChildren(node);
    if (node) return childrenOf(node);
    const session = this.sessions.current;
    if (!session) return [];
    const classes = classesOf(search(session.ranks.all(), this.filter));
    const scopes = this.filter === '' ? scopeRoots(session) : [];
    return [...scopes, ...classes.map((rankClass) => ({ session, rows: rankClass.rows, rankClass }))];
  }

  getTreeItem(node: AnyNode): vscode.TreeItem {
    if (isScopeNode(node)) return scopeItem(node);
    const { session, rows, rankClass } = node;
    const several = severalGroups(session.ranks.all());
    const [row] = rows;
    if (!row) throw new Error('a row of the view without a rank');
    const kind = rankClass || rows.length > 1 ? 'class' : 'rank';
    const item = itemOf(kind, labelsOf(node, row, several), row, themeColor(hueOfRow(session.hues, row)));
    item.id = `${session.debugSession.id} ${keyOfNode(node, row)}`;
    if (rankClass) item.collapsibleState = collapsibleState(rankClass);
    else if (kind === 'class') item.collapsibleState = vscode.TreeItemCollapsibleState.Collapsed;
    else if (row.state === 'stopped') {
      item.command = { command: Command.openRow, title: vscode.l10n.t('Focus') };
    }
    return item;
  }

  /**
   * VS Code adds our view to Run and Debug collapsed: open it once for each workspace, then it is
   * the user's. It may not exist yet when the session does, so this is tried until it is visible.
   */
  private open(): void {
    if (vscode.workspace.getConfiguration('debug').get('openDebug') === 'neverOpen') return; // nor may we
    if (this.memory.get<boolean>(OPENED) ?? this.attempts >= MAX_ATTEMPTS) return;
    this.attempts++;
    if (this.tree.visible) void this.memory.update(OPENED, true);
    else void vscode.commands.executeCommand(`${View.ranks}.focus`, { preserveFocus: true });
  }

  /**
   * Have VS Code lay the list out. It does not do so by itself when it has made the view, and draws no
   * row then; it does when a message is set, also the same one. But laid out while it reads the rows
   * anew it may draw some that it has forgotten ("Data tree node not found"), and then draws none until
   * the view is resized: 1 of 16 windows on a busy machine (measured with 1.100).
   */
  private async layOut(): Promise<void> {
    if (this.laidOut || !this.tree.visible) return; // a message moves the focus, too
    this.laidOut = true;
    await this.tellFilter(); // answered once VS Code has handled what was read before
    this.tree.message = this.tree.message ?? '';
    await this.tellFilter();
  }

  private tellMatches(matching: number, all: number): void {
    const found = vscode.l10n.t('Search “{0}”: {1} of {2}', this.filter, matching, countedRanks(all));
    const message = this.filter && found;
    if (message !== this.tree.message) this.tree.message = message;
  }

  private async tellFilter(): Promise<void> {
    await vscode.commands.executeCommand('setContext', ContextKey.searching, this.filter !== '');
  }

  private refresh(): void {
    const session = this.sessions.current;
    if (session) this.open();
    const rows = session?.ranks.all() ?? [];
    // no badge: VS Code would add it to the number of debug sessions, 5 for four ranks
    this.tree.description = session ? summary(countsOf(rows)) : '';
    const matching = search(rows, this.filter);
    this.tellMatches(matching.length, rows.length);
    // a row that is redrawn between mouse down and mouse up loses the click
    const shown = JSON.stringify([session && [session.debugSession.id, session.scope, session.scopes], matching]);
    if (shown !== this.shown) this.gate.schedule();
    this.shown = shown;
  }

  private async setScope(): Promise<void> {
    const node = await selectedRow(() => this.tree.selection.filter(isScopeNode));
    if (node?.entry) await node.session.set('scope', toggled(node.session.scope, node.entry));
  }

  /** Several choices that are selected, with Ctrl or Shift, are one scope. */
  private unite(selection: readonly AnyNode[]): void {
    const entries = selection.map((node) => (isScopeNode(node) ? node.entry : undefined)).filter((entry) => entry !== undefined);
    const [first] = selection;
    if (first && entries.length > 1 && entries.length === selection.length) void first.session.set('scope', unionOf(entries));
  }

  private search(): void {
    const input = vscode.window.createInputBox();
    const before = this.filter;
    input.title = vscode.l10n.t('Search in Ranks');
    input.prompt = vscode.l10n.t('Numbers, states, locations: 0-3,7 · stopped · tp=1 · train.py:41');
    input.value = before;
    input.ignoreFocusOut = true; // a stop moves the focus to the editor
    let accepted = false;
    input.onDidChangeValue((text) => {
      this.show(text);
    });
    input.onDidAccept(() => {
      accepted = true;
      input.hide();
    });
    input.onDidHide(() => {
      if (!accepted) this.show(before);
      input.dispose();
    });
    input.show();
  }

  private show(filter: string): void {
    this.filter = filter.trim();
    void this.tellFilter();
    this.refresh();
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables, this.gate, this.emitter).dispose();
  }
}
