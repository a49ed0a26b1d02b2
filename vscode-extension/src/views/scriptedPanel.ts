/** What the panels whose pages have a script of ours share: how they begin, and what their buttons do. */

import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import { requireSession } from '../commands/registerCommand';
import type { Shell } from '../logic/page';
import type { RankId } from '../logic/ranks/sets';
import type { RankSessions } from '../ranks/rankSession';

/** Gives a panel its page; `receive` gets what the page's script sends, `gone` is called at its end. */
export function fillPanel(
  panel: vscode.WebviewPanel,
  root: vscode.Uri,
  name: string,
  page: (shell: Shell) => string,
  receive: (message: unknown) => Promise<void>,
  gone: () => void,
): void {
  const dist = vscode.Uri.joinPath(root, 'dist', 'webview');
  const at = (file: string): string => panel.webview.asWebviewUri(vscode.Uri.joinPath(dist, file)).toString();
  panel.webview.options = { enableScripts: true, localResourceRoots: [dist] };
  panel.webview.onDidReceiveMessage((message: unknown) => void receive(message));
  panel.onDidDispose(gone);
  panel.webview.html = page({
    nonce: randomBytes(16).toString('hex'),
    source: panel.webview.cspSource,
    script: at(`${name}.js`),
    style: at(`${name}.css`),
  });
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

/** Moves the focus to a rank of the session that its value is from. */
export async function goToRank(sessions: RankSessions, session: string | undefined, id: RankId | undefined): Promise<void> {
  if (!id) return;
  const args = { rank: id.rank, ...(id.group ? { group: id.group } : {}) };
  await requireSession(sessions, session).request('focus', args);
}
