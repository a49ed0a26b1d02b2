/** Where a number went wrong: the line that the session names is marked, and Compare opens where ranks have parted. */

import * as vscode from 'vscode';
import type { ComparePanel } from '../compare/panel';
import { comparedAt, divergedThread, type WrongNumber, wrongNumberIn } from '../logic/ranks/wrongNumbers';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { isAt } from './groupMarks';

const COLOR = new vscode.ThemeColor('editorError.foreground');

export class WrongNumbers implements vscode.Disposable {
  private readonly found = new Map<RankSession, WrongNumber>();
  /** What is to be compared once all ranks have stopped. */
  private readonly pending = new Map<RankSession, string>();
  private readonly decoration = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    overviewRulerColor: COLOR,
    overviewRulerLane: vscode.OverviewRulerLane.Right,
  });
  private readonly listeners: vscode.Disposable;

  constructor(
    private readonly sessions: RankSessions,
    private readonly panel: ComparePanel,
  ) {
    const draw = (): void => {
      this.draw();
    };
    this.listeners = vscode.Disposable.from(
      this.decoration,
      sessions.onDidReceive(({ session, message }) => {
        const wrong = wrongNumberIn(message);
        if (wrong) this.found.set(session, wrong);
        const threadId = divergedThread(message);
        if (threadId !== undefined) void this.ask(session, threadId);
        if (wrong) this.draw();
      }),
      sessions.onDidChange(() => {
        this.compare();
        this.draw();
      }),
      vscode.window.onDidChangeVisibleTextEditors(draw),
    );
  }

  private async ask(session: RankSession, threadId: number): Promise<void> {
    const { description } = await session.request<{ description?: string }>('exceptionInfo', { threadId });
    const expression = comparedAt(description);
    if (expression === undefined) return;
    this.pending.set(session, expression);
    this.compare();
  }

  private compare(): void {
    for (const [session, expression] of this.pending) {
      if (session.ranks.all().some(({ state }) => state !== 'stopped' && state !== 'exited')) continue;
      this.pending.delete(session);
      void this.panel.compare(session, { expression, ranks: 'all', frame: null });
    }
  }

  private draw(): void {
    for (const session of this.found.keys()) {
      if (!this.sessions.find(session.debugSession.id)) this.found.delete(session); // it has ended
    }
    const marks = [...this.found.values()];
    for (const editor of vscode.window.visibleTextEditors) {
      const options = marks.filter(({ path }) => isAt(editor, path)).map((mark) => optionsFor(editor, mark));
      editor.setDecorations(this.decoration, options);
    }
  }

  dispose(): void {
    this.listeners.dispose();
  }
}

function optionsFor({ document }: vscode.TextEditor, { line, text }: WrongNumber): vscode.DecorationOptions {
  const { range } = document.lineAt(Math.min(line, document.lineCount) - 1);
  return { range, renderOptions: { after: { contentText: `◀ ${text}`, color: COLOR, margin: '0 0 0 2ch' } } };
}
