/** The Compare view: one expression in many ranks, as a page beside the editor. */

import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import { groupsOf, type CompareBody, type Comparison } from '../logic/compare/answer';
import { csvOf, fileName } from '../logic/compare/csv';
import type { FromPage, ToPage } from '../logic/compare/messages';
import { shell, shown } from '../logic/compare/page';
import { liveOf, Problem } from '../views/attempt';
import { define } from '../views/driving';
import type { Live, Sessions } from '../views/live';

const TYPE = 'dapMux.compare';
type Asked = Omit<Comparison, 'body'>;

export class Comparing implements vscode.Disposable, vscode.WebviewPanelSerializer {
  private panel: vscode.WebviewPanel | undefined;
  /** The page has asked for what it is to show: told before, it would draw that twice. */
  private ready = false;
  private now: Comparison | undefined;
  private problem: string | undefined;
  private asked: Asked = { expression: '', ranks: 'all', frame: null };
  private readonly serializer: vscode.Disposable;

  constructor(
    private readonly sessions: Sessions,
    private readonly root: vscode.Uri,
  ) {
    this.serializer = vscode.window.registerWebviewPanelSerializer(TYPE, this);
  }

  /** A page of before a reload: it still has its answer, and says so once it is ready. */
  deserializeWebviewPanel(panel: vscode.WebviewPanel): Thenable<void> {
    this.adopt(panel);
    return Promise.resolve();
  }

  async ask(live: Live, asked: Asked): Promise<void> {
    this.asked = asked;
    const { expression, ranks, frame } = asked;
    try {
      const wanted = { expression, ranks, ...(frame === null ? {} : { frame }) };
      this.now = { ...asked, body: await live.request<CompareBody>('compare', wanted) };
      this.problem = undefined;
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
    }
    this.open();
    this.post();
  }

  private open(): void {
    if (this.panel) {
      this.panel.reveal(undefined, true);
      return;
    }
    const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: false };
    this.adopt(vscode.window.createWebviewPanel(TYPE, 'Compare', column));
  }

  private adopt(panel: vscode.WebviewPanel): void {
    this.panel = panel;
    this.ready = false;
    const dist = vscode.Uri.joinPath(this.root, 'dist', 'webview');
    const at = (name: string): string => panel.webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
    panel.webview.options = { enableScripts: true, localResourceRoots: [dist] };
    panel.webview.onDidReceiveMessage((message: FromPage) => void this.heard(message));
    panel.onDidDispose(() => (this.panel = undefined));
    panel.webview.html = shell({
      nonce: randomBytes(16).toString('hex'),
      source: panel.webview.cspSource,
      script: at('compare.js'),
      style: at('compare.css'),
    });
  }

  private post(): void {
    if (!this.panel) return;
    this.panel.title = this.asked.expression ? `Compare: ${this.asked.expression}` : 'Compare';
    const { expression, ranks } = this.asked;
    const message: ToPage | undefined =
      this.problem !== undefined
        ? { type: 'problem', message: this.problem, expression, ranks }
        : this.now && { type: 'show', comparison: this.now, shown: shown(this.now) };
    if (message && this.ready) void this.panel.webview.postMessage(message);
  }

  private async heard(message: FromPage): Promise<void> {
    try {
      await this.obey(message);
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      this.post();
    }
  }

  private async obey(message: FromPage): Promise<void> {
    if (message.type === 'ready') {
      this.ready = true;
      this.restore(message.kept);
    } else if (message.type === 'ask') {
      const { expression, ranks } = message;
      const frame = expression === this.asked.expression ? this.asked.frame : null;
      this.asked = { expression, ranks: ranks || 'all', frame };
      await this.ask(liveOf(this.sessions), this.asked);
    } else if (message.type === 'export') {
      await this.export();
    } else if (message.type === 'group') {
      await this.group();
    } else {
      await this.go(message.index);
    }
  }

  private restore(kept: Comparison | null): void {
    if (kept && !this.now) {
      this.now = kept;
      this.asked = kept;
    }
    this.post();
  }

  private answer(): Comparison {
    if (!this.now) throw new Problem('There is no answer yet: compare something first.');
    return this.now;
  }

  private async export(): Promise<void> {
    const { expression, body } = this.answer();
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const target = await vscode.window.showSaveDialog({
      title: 'Export the values of all ranks',
      filters: { CSV: ['csv'] },
      ...(folder ? { defaultUri: vscode.Uri.joinPath(folder, fileName(expression)) } : {}),
    });
    if (!target) return;
    const group = this.sessions.current?.ranks.all()[0]?.group ?? 'job';
    await vscode.workspace.fs.writeFile(target, Buffer.from(csvOf(body, group)));
  }

  private async group(): Promise<void> {
    await define(liveOf(this.sessions), this.answer().body.outliers);
  }

  private async go(index: number): Promise<void> {
    const [id] = groupsOf(this.answer().body)[index]?.ids ?? [];
    if (!id) return;
    await liveOf(this.sessions).request('focus', { rank: id.rank, ...(id.group ? { group: id.group } : {}) });
  }

  dispose(): void {
    vscode.Disposable.from(this.serializer, ...(this.panel ? [this.panel] : [])).dispose();
  }
}
