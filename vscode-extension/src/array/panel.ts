/** The array viewer: a tensor or array of ranks as a heat map, in a webview beside the editor. */

import * as vscode from 'vscode';
import { registerCommand, requireSession } from '../commands/registerCommand';
import { Command } from '../constants';
import { queryOf, type ArrayBody, type FromPage, type Query, type ToPage } from '../logic/array/answer';
import { PAGE } from '../logic/array/page';
import { unfold } from '../logic/ranks/sets';
import { variableItem } from '../logic/ranks/stackItems';
import { Throttler } from '../logic/throttler';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { ScriptedPanel } from '../views/scriptedPanel';

const UPDATE_INTERVAL_MS = 100;

export class ArrayPanel extends ScriptedPanel<FromPage, ToPage> {
  private query: Query | undefined;
  private shown: ToPage | undefined;
  private readonly updates = new Throttler(() => this.update(), UPDATE_INTERVAL_MS);

  constructor(
    sessions: RankSessions,
    root: vscode.Uri,
  ) {
    super(sessions, root, 'array', vscode.l10n.t('Array'), PAGE);
    this.disposables.push(
      this.updates,
      registerCommand(Command.array, async (...args) => {
        requireSession(sessions);
        const text = variableItem(args)?.expression ?? (await this.input());
        if (text) this.show(queryOf(text));
      }),
    );
  }

  private input(): Thenable<string | undefined> {
    return vscode.window.showInputBox({
      title: vscode.l10n.t('Show a tensor or array'),
      prompt: vscode.l10n.t('An expression; [$i, 3, $j] chooses the dimensions that are shown, [$rank, $j] has each rank as a row'),
      placeHolder: 'weight[$i, $j]',
    });
  }

  private show(query: Query): void {
    this.query = query;
    this.taken = undefined;
    this.open(true);
    this.updates.schedule();
  }

  protected override changed(): void {
    if (this.query && this.hasMoved()) this.updates.schedule();
  }

  private async update(): Promise<void> {
    const { query } = this;
    if (!query || !this.panel) return;
    this.panel.title = vscode.l10n.t('Array: {0}', query.expression);
    try {
      const session = requireSession(this.sessions);
      this.shown = { type: 'show', query, body: await this.take(session, () => this.request(session, query)) };
    } catch (error) {
      this.shown = { type: 'problem', query, message: error instanceof Error ? error.message : String(error) };
    }
    this.post();
    if (query !== this.query) this.updates.schedule(); // the slider has moved on
  }

  /** Asks the rank in focus; what is spread over ranks, and a row a rank, is asked of all. */
  private async request(session: RankSession, query: Query): Promise<ArrayBody> {
    const ask = (ranks: string): Promise<ArrayBody> => session.request('array', { ...query, ranks });
    if (query.ranks || query.rows === '$rank') return await ask(query.ranks || 'all');
    const body = await ask('');
    const [problem] = body.errors;
    if (problem && body.parts.length === 0) throw new Error(problem.message);
    return body.placements ? await ask('all') : body;
  }

  private post(): void {
    if (this.shown) this.send(this.shown);
  }

  protected override fail(message: string): void {
    if (!this.query) return;
    this.shown = { type: 'problem', query: this.query, message };
    this.post();
  }

  protected override async handle(message: FromPage): Promise<void> {
    if (message.type === 'go') {
      await this.goTo(unfold(message.ranks, '')[0]);
      return;
    }
    if (message.type === 'ask') this.query = message.query;
    else {
      this.query ??= message.kept ?? undefined;
      this.post();
    }
    if (message.type === 'ask' || !this.shown) this.updates.schedule();
  }
}
