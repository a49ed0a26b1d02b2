/** The mesh as a picture: one cell a rank, arrows for who waits for whom, a rectangle as a rank set. */

import * as vscode from 'vscode';
import { defineGroup } from '../commands/control';
import { registerCommand, requireSession } from '../commands/registerCommand';
import { Command } from '../constants';
import type { CompareBody } from '../logic/compare/answer';
import { layOut, type Layout } from '../logic/mesh/layout';
import { FIRST, type FromPage, type ToPage } from '../logic/mesh/messages';
import { gridOf, PAGE } from '../logic/mesh/page';
import { byClass, byState, byValue, type Painting } from '../logic/mesh/paint';
import { NOBODY_ASKED, waitingOf, type Waiting } from '../logic/mesh/waits';
import { severalGroups, type Row } from '../logic/ranks/rows';
import { setOf, type RankId } from '../logic/ranks/sets';
import { Throttler } from '../logic/throttler';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { ScriptedPanel } from '../views/scriptedPanel';
import type { WhyPanel } from '../why/panel';

const UPDATE_INTERVAL_MS = 200;
const TIMEOUT_S = 1; // a rank that is silent has no value, and the others are shown

interface Values {
  readonly session: RankSession;
  readonly expression: string;
  readonly body: CompareBody;
}

export class MeshPanel extends ScriptedPanel<FromPage, ToPage> {
  private kept = FIRST;
  private values: Values | undefined;
  private shown = '';
  /** The session whose ranks were asked for their meshes. */
  private read: RankSession | undefined;
  private readonly updates = new Throttler(() => this.update(), UPDATE_INTERVAL_MS);

  constructor(
    sessions: RankSessions,
    private readonly why: WhyPanel,
    root: vscode.Uri,
  ) {
    super(sessions, root, 'mesh', vscode.l10n.t('Mesh'), PAGE);
    this.disposables.push(
      this.updates,
      registerCommand(Command.mesh, () => {
        this.open(false);
      }),
      why.onDidAnswer(() => {
        this.updates.schedule();
      }),
    );
  }

  protected override changed(): void {
    this.updates.schedule();
  }

  private async update(): Promise<void> {
    if (!this.panel?.visible || !this.ready) return;
    const session = this.sessions.current;
    if (session) {
      await this.readMesh(session);
      await this.evaluate(session);
    }
    this.post(session);
  }

  /** A rank set with a dimension that is not known has the session read the ranks' own meshes: their rows tell them then. */
  private async readMesh(session: RankSession): Promise<void> {
    const rows = session.ranks.all();
    if (this.read === session || rows.length === 0 || rows.some(({ coords }) => coords !== null)) return;
    this.read = session;
    try {
      await session.request('list', { ranks: 'ranks(mesh=0)' });
    } catch {
      // as always: no mesh has a dimension of this name
    }
  }

  private async evaluate(session: RankSession): Promise<void> {
    const { colour, expression } = this.kept;
    if (!this.known(session)) this.taken = undefined;
    if (colour !== 'value' || expression === '' || !this.hasMoved()) return;
    const args = { expression, ranks: 'all', timeout: TIMEOUT_S };
    const body = await this.take(session, () => session.request<CompareBody>('compare', args));
    this.values = { session, expression, body };
  }

  /** The values that were asked for, if they are of this session and expression. */
  private known(session: RankSession): Values | undefined {
    return this.values?.session === session && this.values.expression === this.kept.expression ? this.values : undefined;
  }

  private post(session: RankSession | undefined): void {
    const rows = session?.ranks.all() ?? [];
    const layout = layOut(rows, this.kept.columns);
    const waiting = this.waiting(session, layout);
    const html = gridOf({ layout, painting: this.painting(session, rows), waiting });
    const { dimensions, columns } = layout;
    const message: ToPage = { type: 'show', html, arrows: waiting.arrows, dimensions, columns, kept: this.kept };
    const text = JSON.stringify(message);
    if (text !== this.shown) this.send(message); // a cell that is drawn anew is not under the mouse
    this.shown = text;
  }

  private painting(session: RankSession | undefined, rows: readonly Row[]): Painting {
    if (!session || this.kept.colour === 'state') return byState(rows);
    if (this.kept.colour === 'class') return byClass(rows, session.hues);
    return byValue(this.known(session)?.body);
  }

  private waiting(session: RankSession | undefined, layout: Layout): Waiting {
    const answer = this.why.answer;
    if (!session || answer?.session !== session) return NOBODY_ASKED;
    const group = session.ranks.all()[0]?.group ?? '';
    const { body, time, moment } = answer;
    const waiting = waitingOf(body.waits ?? [], session.ranks.moves.since(moment), group, layout);
    return { ...waiting, heading: `${time}: ${body.sentence}` };
  }

  protected override async handle(message: FromPage): Promise<void> {
    if (message.type === 'ready' || message.type === 'show') {
      this.shown = '';
      this.kept = message.kept ?? this.kept;
      await this.update();
    } else if (message.type === 'why') {
      await this.why.ask();
    } else if (message.type === 'go') {
      await this.goTo(message.id);
    } else await this.act(message.type, message.ids);
  }

  private async act(action: 'scope' | 'name' | 'cast', ids: readonly RankId[]): Promise<void> {
    const session = requireSession(this.sessions);
    const ranks = setOf(ids, severalGroups(session.ranks.all()));
    if (action === 'scope') await session.set('scope', ranks);
    else if (action === 'name') await defineGroup(session, ranks);
    else await vscode.commands.executeCommand(Command.cast, ranks);
  }

  protected override fail(message: string): void {
    this.send({ type: 'problem', message });
  }
}
