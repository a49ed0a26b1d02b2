/** The Parallel Watch: several expressions in all ranks, evaluated at each stop. */

import * as vscode from 'vscode';
import { registerCommand, requireSession } from '../commands/registerCommand';
import type { ComparePanel } from '../compare/panel';
import { Command } from '../constants';
import { csvOfAll, type FromPage, type Kept, type ToPage } from '../logic/watch/messages';
import { PAGE, tableOf } from '../logic/watch/page';
import { hasChanged, valuesOf, type WatchBody, type Watched } from '../logic/watch/row';
import type { RankId } from '../logic/ranks/sets';
import { variableItem } from '../logic/ranks/stackItems';
import { Throttler } from '../logic/throttler';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { exportCsv, ScriptedPanel } from '../views/scriptedPanel';

const UPDATE_INTERVAL_MS = 200;
const TIMEOUT_S = 1; // a rank that is silent is named, and the others are shown
const MAX_EXPRESSIONS = 20;

export class WatchPanel extends ScriptedPanel<FromPage, ToPage> {
  private watched: readonly Watched[] = [];
  private ranks = 'all';
  private focus: RankId | undefined;
  private readonly updates = new Throttler(() => this.update(), UPDATE_INTERVAL_MS);

  constructor(
    sessions: RankSessions,
    private readonly compare: ComparePanel,
    root: vscode.Uri,
  ) {
    super(sessions, root, 'watch', vscode.l10n.t('Parallel Watch'), PAGE);
    this.disposables.push(
      this.updates,
      registerCommand(Command.watch, (...args) => {
        const variable = variableItem(args);
        this.add(variable?.expression ?? '');
        this.open(false);
      }),
      vscode.debug.onDidChangeActiveStackItem(() => {
        if (this.readFocus()) this.post();
      }),
    );
  }

  private add(expression: string): void {
    const known = this.watched.some((one) => one.expression === expression);
    if (expression && !known && this.watched.length < MAX_EXPRESSIONS) {
      this.watched = [...this.watched, { expression, body: null, problem: '', changed: false }];
    }
    this.again();
  }

  /** Evaluate once more, although nobody has moved. */
  private again(): void {
    this.taken = undefined;
    this.post();
    this.updates.schedule();
  }

  protected override changed(): void {
    if (this.watched.length > 0 && this.hasMoved()) this.updates.schedule();
  }

  private async update(): Promise<void> {
    const session = this.sessions.current;
    if (!session || this.watched.length === 0 || !this.hasMoved()) return;
    const answers = await this.take(session, () =>
      Promise.all(this.watched.map(({ expression }) => this.evaluate(session, expression))),
    );
    const known = new Map(answers.map((one) => [one.expression, one]));
    this.watched = this.watched.map((one) => known.get(one.expression) ?? one);
    this.readFocus();
    this.post();
    if (this.watched.some(({ expression }) => !known.has(expression))) this.again();
  }

  private async evaluate(session: RankSession, expression: string): Promise<Watched> {
    const before = this.watched.find((one) => one.expression === expression)?.body ?? null;
    try {
      const args = { expression, ranks: this.ranks, timeout: TIMEOUT_S, history: true };
      const body = await session.request<WatchBody>('compare', args);
      return { expression, body, problem: '', changed: hasChanged(before, body) };
    } catch (error) {
      return { expression, body: null, problem: error instanceof Error ? error.message : String(error), changed: false };
    }
  }

  /** Whether the editor shows another rank than before. */
  private readFocus(): boolean {
    const item = vscode.debug.activeStackItem;
    const row = item && this.sessions.find(item.session.id)?.ranks.withThread(item.threadId);
    const focus = row && { group: row.group, rank: row.rank };
    if (!focus || (focus.rank === this.focus?.rank && focus.group === this.focus.group)) return false;
    this.focus = focus;
    return true;
  }

  private post(): void {
    const session = this.sessions.current;
    const state = session ? '' : vscode.l10n.t('No session is running: these values are from the last stop.');
    const kept = { expressions: this.watched.map(({ expression }) => expression), ranks: this.ranks };
    this.send({ type: 'show', html: tableOf(this.watched, this.focus), state, kept });
  }

  protected override fail(message: string): void {
    this.send({ type: 'problem', message });
  }

  protected override async handle(message: FromPage): Promise<void> {
    if (message.type === 'ready') this.restore(message.kept);
    else if (message.type === 'export') await exportCsv(this.sessions, 'parallel-watch.csv', (group) => csvOfAll(this.watched, group));
    else if (message.type === 'add') {
      this.ranks = message.ranks || 'all';
      this.add(message.expression);
    } else if (message.type === 'remove') {
      this.watched = this.watched.filter((_, index) => index !== message.row);
      this.post();
    } else if (message.type === 'go') await this.go(this.row(message.row), message.at);
    else await this.detail(this.row(message.row));
  }

  private restore(kept: Kept | null): void {
    if (kept && this.watched.length === 0) {
      this.ranks = kept.ranks;
      for (const expression of kept.expressions) this.add(expression);
    }
    this.again();
  }

  private async detail({ expression }: Watched): Promise<void> {
    await this.compare.compare(requireSession(this.sessions), { expression, ranks: this.ranks, frame: null });
  }

  private row(index: number): Watched {
    const found = this.watched[index];
    if (!found) throw new Error(`no row ${index}`);
    return found;
  }

  private async go({ body }: Watched, at: number): Promise<void> {
    const [id] = (body && valuesOf(body)[at]?.ids) ?? [];
    await this.goTo(id);
  }
}
