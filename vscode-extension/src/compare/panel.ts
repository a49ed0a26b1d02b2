/** The Compare view: one expression on many ranks, in a webview beside the editor. */

import * as vscode from 'vscode';
import { defineGroup } from '../commands/control';
import { requireSession, UserError } from '../commands/registerCommand';
import { ageOf, type Age, type Origin } from '../logic/compare/age';
import { groupsOf, type CompareBody, type Comparison } from '../logic/compare/answer';
import { csvOf, fileName } from '../logic/compare/csv';
import type { FromPage, ToPage } from '../logic/compare/messages';
import { PAGE, shown } from '../logic/compare/page';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { exportCsv, ScriptedPanel } from '../views/scriptedPanel';

type Query = Omit<Comparison, 'body'>;

export class ComparePanel extends ScriptedPanel<FromPage, ToPage> {
  private comparison: Comparison | undefined;
  private refusal: string | undefined;
  private query: Query = { expression: '', ranks: 'all', frame: null };
  private age: Age | undefined;

  constructor(sessions: RankSessions, root: vscode.Uri) {
    super(sessions, root, 'compare', vscode.l10n.t('Compare'), PAGE);
  }

  async compare(session: RankSession, query: Query): Promise<void> {
    this.query = query;
    const { expression, ranks, frame } = query;
    try {
      const args = { expression, ranks, ...(frame === null ? {} : { frame }) };
      const body = await this.take(session, () => session.request<CompareBody>('compare', args));
      this.comparison = { ...query, body };
      this.refusal = undefined;
    } catch (error) {
      this.refusal = error instanceof Error ? error.message : String(error);
    }
    this.open(true);
    this.post();
  }

  private post(): void {
    if (!this.panel) return;
    const { expression, ranks } = this.query;
    this.panel.title = expression ? vscode.l10n.t('Compare: {0}', expression) : vscode.l10n.t('Compare');
    const message: ToPage | undefined =
      this.refusal !== undefined
        ? { type: 'problem', message: this.refusal, expression, ranks }
        : this.comparison && { type: 'show', comparison: this.comparison, shown: shown(this.comparison) };
    if (!message || !this.ready) return;
    this.send(message);
    this.age = undefined;
    this.changed();
  }

  /** Tell the page of when its values are, if that has changed. */
  protected override changed(): void {
    if (!this.panel || !this.ready || !this.comparison) return;
    const age = ageOf(this.comparison.body, this.origin(), this.sessions.current !== undefined);
    if (age.words === this.age?.words && age.session === this.age.session) return;
    this.age = age;
    this.send({ type: 'age', age });
  }

  private origin(): Origin {
    const { comparison, query } = this;
    const isAnswer = comparison?.expression === query.expression && comparison.ranks === query.ranks;
    if (comparison && !isAnswer) return { kind: 'refused', ...comparison };
    if (!this.taken) return { kind: 'reloaded' };
    const { session, moment } = this.taken;
    if (this.sessions.find(session.debugSession.id) !== session) return { kind: 'ended' };
    return { kind: 'running', moved: session.ranks.moves.since(moment) };
  }

  protected override fail(message: string): void {
    this.refusal = message;
    this.post();
  }

  protected override async handle(message: FromPage): Promise<void> {
    if (message.type === 'ready') {
      this.restore(message.kept);
    } else if (message.type === 'ask') {
      const { expression, ranks } = message;
      const frame = expression === this.query.expression ? this.query.frame : null;
      this.query = { expression, ranks: ranks || 'all', frame };
      await this.compare(requireSession(this.sessions), this.query);
    } else if (message.type === 'again') {
      const { expression, ranks, frame } = this.requireComparison();
      await this.compare(requireSession(this.sessions), { expression, ranks, frame });
    } else if (message.type === 'export') {
      await this.export();
    } else if (message.type === 'group') {
      await this.groupOutliers();
    } else {
      await this.focus(message.index);
    }
  }

  private restore(kept: Comparison | null): void {
    if (kept && !this.comparison) {
      this.comparison = kept;
      this.query = kept;
    }
    this.post();
  }

  private requireComparison(): Comparison {
    if (!this.comparison) throw new UserError(vscode.l10n.t('No values yet: compare an expression first.'));
    return this.comparison;
  }

  private async export(): Promise<void> {
    const { expression, body } = this.requireComparison();
    await exportCsv(this.sessions, fileName(expression), (group) => csvOf(body, group));
  }

  private async groupOutliers(): Promise<void> {
    await defineGroup(requireSession(this.sessions), this.requireComparison().body.outliers);
  }

  private async focus(index: number): Promise<void> {
    const [id] = groupsOf(this.requireComparison().body)[index]?.ids ?? [];
    await this.goTo(id);
  }
}
