/** What the panels whose pages have a script of ours share: how they begin, and what their buttons do. */

import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import { requireSession } from '../commands/registerCommand';
import { View } from '../constants';
import { scriptedPage, type Content } from '../logic/page';
import type { Moment } from '../logic/ranks/moves';
import type { RankId } from '../logic/ranks/sets';
import type { RankSession, RankSessions } from '../ranks/rankSession';

/** Where what is shown comes from, and of when it is. */
interface Taken {
  readonly session: RankSession;
  readonly moment: Moment;
}

/** One panel at a time, which is there again after a reload of the window. */
export abstract class ScriptedPanel<From, To> implements vscode.Disposable, vscode.WebviewPanelSerializer {
  protected panel: vscode.WebviewPanel | undefined;
  /** Whether the page has asked for its content; sent earlier, it would be drawn twice. */
  protected ready = false;
  /** Undefined before anything was asked, and where a page has kept its content over a reload. */
  protected taken: Taken | undefined;
  protected readonly disposables: Pick<vscode.Disposable, 'dispose'>[];

  constructor(
    protected readonly sessions: RankSessions,
    private readonly root: vscode.Uri,
    /** Of its view, script and style. */
    private readonly name: 'array' | 'compare' | 'mesh' | 'watch',
    private readonly title: string,
    private readonly content: Content,
  ) {
    this.disposables = [
      vscode.window.registerWebviewPanelSerializer(View[name], this),
      sessions.onDidChange(() => {
        this.changed();
      }),
    ];
  }

  /** Carries out what the page's script sends. */
  protected abstract handle(message: From): Promise<void>;
  /** Shows what that has thrown. */
  protected abstract fail(message: string): void;
  /** Ranks may have moved, or the panel has come into sight or gone. */
  protected abstract changed(): void;

  /** Whether a rank has stopped that was not asked there; a page that is not seen asks nobody. */
  protected hasMoved(): boolean {
    const session = this.sessions.current;
    if (!this.panel?.visible || !session?.ranks.all().some(({ state }) => state === 'stopped')) return false;
    return this.taken?.session !== session || session.ranks.moves.since(this.taken.moment).length > 0;
  }

  /** Asks the ranks, and remembers of when the answer is. */
  protected async take<Answer>(session: RankSession, ask: () => Promise<Answer>): Promise<Answer> {
    const moment = await session.moment(); // before: a rank may run on while the others answer
    const answer = await ask();
    this.taken = { session, moment };
    return answer;
  }

  /** Moves the focus to a rank of the session that was asked. */
  protected async goTo(id: RankId | undefined): Promise<void> {
    if (!id) return;
    const args = { rank: id.rank, ...(id.group ? { group: id.group } : {}) };
    await requireSession(this.sessions, this.taken?.session.debugSession.id).request('focus', args);
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel): Thenable<void> {
    this.adopt(panel);
    return Promise.resolve();
  }

  protected open(preserveFocus: boolean): void {
    if (this.panel) {
      this.panel.reveal(undefined, preserveFocus);
      return;
    }
    // beside a file, but not beside another page: three columns are too narrow
    const isPage = vscode.window.tabGroups.activeTabGroup.activeTab?.input instanceof vscode.TabInputWebview;
    const column = { viewColumn: isPage ? vscode.ViewColumn.Active : vscode.ViewColumn.Beside, preserveFocus: false };
    this.adopt(vscode.window.createWebviewPanel(View[this.name], this.title, column));
  }

  private adopt(panel: vscode.WebviewPanel): void {
    const dist = vscode.Uri.joinPath(this.root, 'dist', 'webview');
    const at = (file: string): string => panel.webview.asWebviewUri(vscode.Uri.joinPath(dist, file)).toString();
    this.panel = panel;
    this.ready = false;
    panel.webview.options = { enableScripts: true, localResourceRoots: [dist] };
    panel.webview.onDidReceiveMessage((message: From & { readonly type: string }) => void this.receive(message));
    panel.onDidDispose(() => (this.panel = undefined));
    panel.onDidChangeViewState(() => {
      this.changed();
    });
    const nonce = randomBytes(16).toString('hex');
    const shell = { nonce, source: panel.webview.cspSource, script: at(`${this.name}.js`), style: at(`${this.name}.css`) };
    panel.webview.html = scriptedPage(shell, this.content);
  }

  private async receive(message: From & { readonly type: string }): Promise<void> {
    if (message.type === 'ready') this.ready = true;
    try {
      await this.handle(message);
    } catch (error) {
      this.fail(error instanceof Error ? error.message : String(error));
    }
  }

  protected send(message: To): void {
    if (this.ready) void this.panel?.webview.postMessage(message);
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables, ...(this.panel ? [this.panel] : [])).dispose();
  }
}

/** Asks for a file, `name` to begin with, and writes what `csv` makes of the job's group. */
export async function exportCsv(sessions: RankSessions, name: string, csv: (group: string) => string): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const target = await vscode.window.showSaveDialog({
    title: vscode.l10n.t('Export the values of all ranks'),
    filters: { CSV: ['csv'] },
    ...(folder ? { defaultUri: vscode.Uri.joinPath(folder, name) } : {}),
  });
  if (!target) return;
  const group = sessions.current?.ranks.all()[0]?.group ?? 'job';
  await vscode.workspace.fs.writeFile(target, Buffer.from(csv(group)));
}
