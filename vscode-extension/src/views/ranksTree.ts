/** The Ranks view: classes of ranks at the same place, and their ranks below. */

import * as vscode from 'vscode';
import { registerCommand, registerRowCommand } from '../commands/registerCommand';
import { Command, ContextKey, View } from '../constants';
import { classesOf, isException, type RankClass } from '../logic/ranks/classes';
import { isDead } from '../logic/ranks/deaths';
import { search } from '../logic/ranks/filter';
import { classLabels, type Labels, rankLabels } from '../logic/ranks/labels';
import { keyOf, severalGroups, type Row } from '../logic/ranks/rows';
import { countedRanks } from '../logic/ranks/sets';
import { countsOf, summary } from '../logic/ranks/status';
import { RefreshGate } from '../logic/refreshGate';
import type { RankSession, RankSessions } from '../ranks/rankSession';

/** A row of the view: one rank, or a class of ranks. */
export interface Node {
  readonly session: RankSession;
  readonly rows: readonly Row[];
  readonly rankClass: RankClass | undefined;
}

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

function lookOf(row: Row): string {
  if (isDead(row)) return 'dead';
  return isException(row) ? 'exception' : row.state;
}

/** A class looks like its first rank: all of its ranks are in the same state. */
function itemOf(kind: 'class' | 'rank', labels: Labels, row: Row): vscode.TreeItem {
  const item = new vscode.TreeItem(labels.label);
  const [icon, color] = ICONS[lookOf(row)] ?? ['question'];
  item.description = labels.description;
  item.tooltip = labels.tooltip;
  item.accessibilityInformation = { label: labels.spoken };
  item.contextValue = `${kind}.${row.state}`;
  item.iconPath = new vscode.ThemeIcon(icon, color === undefined ? undefined : new vscode.ThemeColor(color));
  return item;
}

export class RanksTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly emitter = new vscode.EventEmitter<undefined>();
  private readonly gate = new RefreshGate(
    () => {
      this.emitter.fire(undefined);
    },
    () => this.layOut(),
  );
  private readonly tree: vscode.TreeView<Node>;
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
      registerRowCommand(Command.openRow, this.tree, Command.focus),
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
    return this.tree.selection;
  }

  getChildren(node?: Node): Node[] {
    this.gate.read();
    if (node) {
      return node.rows.map((row) => ({ session: node.session, rows: [row], rankClass: undefined }));
    }
    const session = this.sessions.current;
    if (!session) return [];
    const classes = classesOf(search(session.ranks.all(), this.filter));
    return classes.map((rankClass) => ({ session, rows: rankClass.rows, rankClass }));
  }

  getTreeItem(node: Node): vscode.TreeItem {
    const { session, rows, rankClass } = node;
    const several = severalGroups(session.ranks.all());
    const [row] = rows;
    if (!row) throw new Error('a row of the view without a rank');
    const item = rankClass
      ? itemOf('class', classLabels(rankClass, several), row)
      : itemOf('rank', rankLabels(row, several), row);
    item.id = `${session.debugSession.id} ${rankClass ? rankClass.key : keyOf(row)}`;
    if (rankClass) item.collapsibleState = collapsibleState(rankClass);
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
    const shown = JSON.stringify([session?.debugSession.id, matching]);
    if (shown !== this.shown) this.gate.schedule();
    this.shown = shown;
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
