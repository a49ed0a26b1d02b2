/** The Parallel Stacks view: where all ranks are, as one tree of their Python stacks. It pauses none. */

import * as vscode from 'vscode';
import { registerCommand, registerRowCommand } from '../commands/registerCommand';
import { Command, ContextKey, View } from '../constants';
import { commonHue } from '../logic/ranks/hues';
import { keyOf, rankKey, type Row } from '../logic/ranks/rows';
import { unfold } from '../logic/ranks/sets';
import { stackLabels } from '../logic/stacks/labels';
import { endOf, rowsOf, type StackRow, type StacksBody } from '../logic/stacks/tree';
import { Throttler } from '../logic/throttler';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { itemWith, themeColor } from './scopeRows';

/** Ranks are asked at most this often, and only while the view is seen. */
const REFRESH_INTERVAL_MS = 500;
const RUNNING = new vscode.ThemeIcon('debug-start', new vscode.ThemeColor('charts.green'));
const STOPPED = new vscode.ThemeColor('charts.yellow');
const MISSING = new vscode.ThemeIcon('question', new vscode.ThemeColor('list.warningForeground'));

/** A row of the view, and the session that it is of. */
export interface StackNode {
  readonly session: RankSession;
  readonly stack: StackRow;
}

export function isStackNode(value: unknown): value is StackNode {
  return typeof value === 'object' && value !== null && 'session' in value && 'stack' in value;
}

function iconOf({ session, stack: row }: StackNode): vscode.ThemeIcon {
  if (row.kind === 'missing') return MISSING;
  if (row.kind === 'branch') return new vscode.ThemeIcon('layers', hueOf(session, row.ranks));
  if (row.kind === 'thread') return new vscode.ThemeIcon('list-tree');
  const end = endOf(row);
  if (end) return end.stopped === '' ? RUNNING : new vscode.ThemeIcon('debug-pause', hueOf(session, end.stopped) ?? STOPPED);
  return new vscode.ThemeIcon(row.kind === 'library' ? 'library' : 'symbol-method');
}

function hueOf(session: RankSession, ranks: string): vscode.ThemeColor | undefined {
  const rows = session.ranks.all();
  const named = new Set(unfold(ranks, rows[0]?.group ?? '').map(rankKey));
  return themeColor(commonHue(session.hues, rows.filter((row) => named.has(keyOf(row)))));
}

function collapsibleState(row: StackRow): vscode.TreeItemCollapsibleState {
  const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  if (row.children.length === 0) return None;
  return row.kind === 'library' || (row.kind === 'branch' && row.crowded) ? Collapsed : Expanded;
}

export class StacksTree implements vscode.TreeDataProvider<StackNode>, vscode.Disposable {
  private readonly emitter = new vscode.EventEmitter<undefined>();
  private readonly tree: vscode.TreeView<StackNode>;
  private readonly throttler = new Throttler(() => this.read(), REFRESH_INTERVAL_MS);
  private readonly disposables: vscode.Disposable[];
  private session: RankSession | undefined;
  private rows: readonly StackRow[] = [];
  private everyThread = false;
  /** Where ranks were when they were asked last: while this is the same, so are the stopped ones' stacks. */
  private asked = '';
  readonly onDidChangeTreeData = this.emitter.event;

  constructor(private readonly sessions: RankSessions) {
    this.tree = vscode.window.createTreeView(View.stacks, { treeDataProvider: this, showCollapseAll: true });
    this.disposables = [
      this.tree,
      this.tree.onDidChangeVisibility(() => {
        this.asked = '';
        this.update();
      }),
      sessions.onDidChange(() => {
        this.update();
      }),
      registerRowCommand(Command.openStackRow, this.tree, Command.openStack),
      registerCommand(Command.refreshStacks, () => this.read()),
      registerCommand(Command.allThreads, () => this.showThreads(true)),
      registerCommand(Command.mainThreads, () => this.showThreads(false)),
    ];
  }

  getChildren(node?: StackNode): StackNode[] {
    const session = node?.session ?? this.session;
    if (!session) return [];
    return (node?.stack.children ?? this.rows).map((stack) => ({ session, stack }));
  }

  getTreeItem(node: StackNode): vscode.TreeItem {
    const { session, stack } = node;
    const item = itemWith(stackLabels(stack), collapsibleState(stack));
    item.id = `${session.debugSession.id} ${stack.key}`;
    item.iconPath = iconOf(node);
    item.contextValue = `stack.${stack.kind}`;
    if (stack.kind !== 'thread' && stack.kind !== 'missing') {
      item.command = { command: Command.openStackRow, title: vscode.l10n.t('Go There') };
    }
    return item;
  }

  /** Ask again if ranks have moved since; a view that nobody sees asks nothing. */
  private update(): void {
    const { current } = this.sessions;
    if (current !== this.session) this.show(current, []);
    if (!current || !this.tree.visible || placesOf(current.ranks.all()) === this.asked) return;
    this.throttler.schedule();
  }

  private async read(): Promise<void> {
    const session = this.sessions.current;
    if (!session) return;
    this.asked = placesOf(session.ranks.all());
    try {
      const threads = this.everyThread ? 'all' : 'main';
      const body = await session.request<StacksBody>('stacks', { threads });
      if (session !== this.sessions.current) return;
      this.show(session, rowsOf(body));
      this.tree.description = vscode.l10n.t('as of {0}', new Date().toLocaleTimeString());
    } catch (error) {
      this.show(session, []);
      this.tree.message = error instanceof Error ? error.message : String(error); // an older session, for example
    }
  }

  private show(session: RankSession | undefined, rows: readonly StackRow[]): void {
    this.session = session;
    this.rows = rows;
    this.tree.description = '';
    this.tree.message = '';
    this.emitter.fire(undefined);
  }

  private async showThreads(every: boolean): Promise<void> {
    this.everyThread = every;
    await vscode.commands.executeCommand('setContext', ContextKey.allThreads, every);
    await this.read();
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables, this.throttler, this.emitter).dispose();
  }
}

function placesOf(rows: readonly Row[]): string {
  return JSON.stringify(rows.map(({ threadId, state, path, line, pid }) => [threadId, state, path, line, pid]));
}
