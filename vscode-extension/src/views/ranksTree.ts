/** The Ranks view: classes of ranks at the same place, and their ranks below. */

import * as vscode from 'vscode';
import { classesOf, type RankClass } from '../logic/ranks/classes';
import { search } from '../logic/ranks/filter';
import { keyOf, severalGroups, type Row } from '../logic/ranks/rows';
import { ranksWord } from '../logic/ranks/sets';
import { classWords, rankWords, type Words } from '../logic/ranks/words';
import { command } from './attempt';
import type { Live, Sessions } from './live';

/** A row of the view: one rank, or all of a class. */
export interface Node {
  readonly live: Live;
  readonly rows: readonly Row[];
  readonly found: RankClass | undefined;
}

const UNFOLDED = 8; // ranks of a class that is shown unfolded at first
const ICONS: Readonly<Record<string, readonly [string, string?]>> = {
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
  return typeof value === 'object' && value !== null && 'live' in value && 'rows' in value;
}

function foldOf({ rows }: RankClass): vscode.TreeItemCollapsibleState {
  const { Expanded, Collapsed } = vscode.TreeItemCollapsibleState;
  return rows.length <= UNFOLDED ? Expanded : Collapsed;
}

/** A class looks as its first rank does: all of its ranks are in the same state. */
function itemOf(kind: 'class' | 'rank', words: Words, { state, reason }: Row): vscode.TreeItem {
  const item = new vscode.TreeItem(words.label);
  const failed = state === 'stopped' && reason === 'exception';
  const [icon, color] = ICONS[failed ? 'exception' : state] ?? ['question'];
  item.description = words.description;
  item.tooltip = words.tooltip;
  item.accessibilityInformation = { label: words.spoken };
  item.contextValue = `${kind}.${state}`;
  item.iconPath = new vscode.ThemeIcon(icon, color === undefined ? undefined : new vscode.ThemeColor(color));
  return item;
}

export class RanksTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly emitter = new vscode.EventEmitter<undefined>();
  private readonly tree: vscode.TreeView<Node>;
  private readonly parts: vscode.Disposable[];
  private filter = '';
  private shown = '';
  readonly onDidChangeTreeData = this.emitter.event;

  constructor(private readonly sessions: Sessions) {
    this.tree = vscode.window.createTreeView('dapMux.ranks', { treeDataProvider: this, canSelectMany: true });
    this.parts = [
      this.tree,
      sessions.onDidChange(() => {
        this.refresh();
      }),
      command('dapMux.searchRanks', () => {
        this.search();
      }),
      command('dapMux.clearSearch', () => {
        this.show('');
      }),
    ];
  }

  /** The rows that are marked in the view. */
  get selection(): readonly Node[] {
    return this.tree.selection;
  }

  getChildren(node?: Node): Node[] {
    if (node) return node.rows.map((row) => ({ live: node.live, rows: [row], found: undefined }));
    const live = this.sessions.current;
    if (!live) return [];
    const classes = classesOf(search(live.ranks.all(), this.filter));
    return classes.map((found) => ({ live, rows: found.rows, found }));
  }

  getTreeItem(node: Node): vscode.TreeItem {
    const { live, rows, found } = node;
    const several = severalGroups(live.ranks.all());
    const [row] = rows;
    if (!row) throw new Error('a row of the view without a rank');
    const item = found
      ? itemOf('class', classWords(found, several), row)
      : itemOf('rank', rankWords(row, several), row);
    item.id = `${live.session.id} ${found ? found.key : keyOf(row)}`;
    if (found) item.collapsibleState = foldOf(found);
    else if (row.state === 'stopped') item.command = { command: 'dapMux.focus', title: 'Focus', arguments: [node] };
    return item;
  }

  private refresh(): void {
    const live = this.sessions.current;
    const rows = live?.ranks.all() ?? [];
    const stopped = rows.filter(({ state }) => state === 'stopped').length;
    this.tree.badge = stopped ? { value: stopped, tooltip: `${ranksWord(stopped)} stopped` } : undefined;
    const fitting = search(rows, this.filter);
    this.tree.message =
      this.filter && `Search “${this.filter}”: ${fitting.length} of ${ranksWord(rows.length)}`;
    // a row that is drawn anew between a press and a release of the mouse loses the click
    const shown = JSON.stringify([live?.session.id, fitting]);
    if (shown !== this.shown) this.emitter.fire(undefined);
    this.shown = shown;
  }

  private search(): void {
    const input = vscode.window.createInputBox();
    const before = this.filter;
    input.title = 'Search in Ranks';
    input.placeholder = 'Numbers, states, places: 0-3,7   stopped   tp=1   train.py:41';
    input.value = before;
    input.ignoreFocusOut = true; // ranks that stop meanwhile take the focus to the editor
    let kept = false;
    input.onDidChangeValue((text) => {
      this.show(text);
    });
    input.onDidAccept(() => {
      kept = true;
      input.hide();
    });
    input.onDidHide(() => {
      if (!kept) this.show(before);
      input.dispose();
    });
    input.show();
  }

  private show(filter: string): void {
    this.filter = filter.trim();
    void vscode.commands.executeCommand('setContext', 'dapMux.searching', this.filter !== '');
    this.refresh();
  }

  dispose(): void {
    vscode.Disposable.from(...this.parts, this.emitter).dispose();
  }
}
