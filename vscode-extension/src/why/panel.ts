/** *Why Is My Job Not Moving?*: the answer of `why`, in a page beside the editor. */

import * as vscode from 'vscode';
import { registerCommand, requireSession, UserError } from '../commands/registerCommand';
import { goTo } from '../commands/stacks';
import { Command, View } from '../constants';
import type { WhyBody } from '../logic/why/answer';
import type { Moment } from '../logic/ranks/moves';
import { whyPage } from '../logic/why/page';
import type { RankSession, RankSessions } from '../ranks/rankSession';

/** Commands that the page may run, and no others. */
const LINKS = { again: Command.why, copy: Command.copyWhyCommand, open: Command.openSuspect };

export interface Answer {
  readonly session: RankSession;
  readonly body: WhyBody;
  /** When it was asked. */
  readonly moment: Moment;
  readonly time: string;
}

export class WhyPanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  answer: Answer | undefined;
  private readonly answers = new vscode.EventEmitter<void>();
  readonly onDidAnswer = this.answers.event;
  private readonly commands: vscode.Disposable;

  constructor(
    private readonly sessions: RankSessions,
    private readonly root: vscode.Uri,
  ) {
    this.commands = vscode.Disposable.from(
      this.answers,
      registerCommand(Command.why, async () => {
        this.show(await this.ask());
      }),
      registerCommand(Command.copyWhyCommand, async () => {
        await vscode.env.clipboard.writeText(this.requireAnswer().body.next);
      }),
      registerCommand(Command.openSuspect, (suspect, depth) => this.openSuspect(Number(suspect), Number(depth))),
    );
  }

  /** The answer, which the page does not show yet. */
  async ask(): Promise<Answer> {
    const session = requireSession(this.sessions);
    const title = vscode.l10n.t('Asking all ranks why the job does not move');
    const moment = await session.moment(); // before: a rank may run on while it is asked
    const body = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, () =>
      session.request<WhyBody>('why'),
    );
    this.answer = { session, body, moment, time: new Date().toLocaleTimeString() };
    this.answers.fire();
    return this.answer;
  }

  private show({ body, time }: Answer): void {
    const panel = this.panel ?? this.open();
    const dist = vscode.Uri.joinPath(this.root, 'dist', 'webview');
    const style = panel.webview.asWebviewUri(vscode.Uri.joinPath(dist, 'why.css')).toString();
    panel.webview.html = whyPage(body, time, LINKS, { source: panel.webview.cspSource, style });
    panel.reveal(undefined, true);
  }

  private open(): vscode.WebviewPanel {
    const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const title = vscode.l10n.t('Why Is My Job Not Moving?');
    this.panel = vscode.window.createWebviewPanel(View.why, title, column, {
      enableCommandUris: Object.values(LINKS),
      enableFindWidget: true,
      localResourceRoots: [vscode.Uri.joinPath(this.root, 'dist', 'webview')],
    });
    this.panel.onDidDispose(() => (this.panel = undefined));
    return this.panel;
  }

  private requireAnswer(): Answer {
    if (!this.answer) throw new UserError(vscode.l10n.t('Nothing has been asked yet.'));
    return this.answer;
  }

  private async openSuspect(index: number, depth: number): Promise<void> {
    const { session, body } = this.requireAnswer();
    if (this.sessions.find(session.debugSession.id) !== session) {
      throw new UserError(vscode.l10n.t('The session of this answer has ended.'));
    }
    const suspect = body.suspects[index];
    if (suspect) await goTo(session, { ranks: suspect.ranks, place: suspect.stack[depth], isTop: depth === 0 });
  }

  dispose(): void {
    this.commands.dispose();
    this.panel?.dispose();
  }
}
