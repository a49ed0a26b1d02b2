/** `≠ {300} 340268` in the text, behind the variables whose values differ between ranks. */

import * as vscode from 'vscode';
import { notesFor, type Variable } from '../logic/values/notes';
import type { RankSession, RankSessions } from '../ranks/rankSession';

interface Scope {
  readonly presentationHint?: string;
  readonly variablesReference: number;
}

const SAME_MOMENT = 1000; // ms

/** Registered while a job is debugged only: beside a provider, VS Code makes no inline values of its own. */
export class InlineValues implements vscode.InlineValuesProvider, vscode.Disposable {
  private registered: vscode.Disposable | undefined;
  private last: { readonly key: string; readonly at: number; readonly found: Promise<readonly Variable[]> } | undefined;
  private readonly following: vscode.Disposable;

  constructor(private readonly sessions: RankSessions) {
    this.following = sessions.onDidChange(() => {
      this.follow();
    });
  }

  private follow(): void {
    if (this.sessions.current === undefined) {
      this.registered?.dispose();
      this.registered = undefined;
    } else {
      this.registered ??= vscode.languages.registerInlineValuesProvider({ language: 'python' }, this);
    }
  }

  async provideInlineValues(
    document: vscode.TextDocument,
    _: vscode.Range,
    { frameId, stoppedLocation }: vscode.InlineValueContext,
  ): Promise<vscode.InlineValue[]> {
    const id = vscode.debug.activeDebugSession?.id;
    const session = this.sessions.find(id);
    const variables = session ? await this.locals(session, `${id} ${frameId}`, frameId) : [];
    const line = Math.min(stoppedLocation.end.line, document.lineCount - 1);
    return notesFor((at) => document.lineAt(at).text, line, variables).map((note) => {
      const range = new vscode.Range(note.line, note.column, note.line, note.end);
      return new vscode.InlineValueText(range, note.text);
    });
  }

  /** VS Code asks again for each editor and each move of the focus, within moments. */
  private locals(session: RankSession, key: string, frameId: number): Promise<readonly Variable[]> {
    const now = Date.now();
    if (this.last?.key !== key || now - this.last.at > SAME_MOMENT) {
      this.last = { key, at: now, found: localsOf(session, frameId) };
    }
    return this.last.found;
  }

  dispose(): void {
    this.following.dispose();
    this.registered?.dispose();
  }
}

/** None where the rank has run on meanwhile. */
async function localsOf(session: RankSession, frameId: number): Promise<readonly Variable[]> {
  try {
    const { scopes } = await session.request<{ scopes: readonly Scope[] }>('scopes', { frameId });
    const locals = scopes.find(({ presentationHint }) => presentationHint === 'locals');
    if (!locals) return [];
    const { variablesReference } = locals;
    return (await session.request<{ variables: readonly Variable[] }>('variables', { variablesReference })).variables;
  } catch {
    return [];
  }
}
