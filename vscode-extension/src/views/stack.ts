/** Commands of the call stack's and the variables' context menus. */

import * as vscode from 'vscode';
import { castText } from '../logic/ranks/castText';
import type { Row } from '../logic/ranks/rows';
import { stackItem, variableItem } from '../logic/ranks/stackItems';
import type { Comparing } from '../compare/panel';
import { command, liveOf, Problem } from './attempt';
import { drive, focus } from './driving';
import type { Live, Sessions } from './live';
import { isNode } from './ranksTree';

/** The rank of a row of the call stack, of the Ranks view, or else the one in focus. */
function rankOf(sessions: Sessions, args: readonly unknown[]): { live: Live; row: Row | undefined } {
  const [node] = args;
  if (isNode(node)) return { live: node.live, row: node.rows[0] };
  const item = stackItem(args);
  const live = liveOf(sessions, item.session);
  const threadId = item.threadId ?? focusedThread(live);
  return { live, row: threadId === undefined ? undefined : live.ranks.withThread(threadId) };
}

function focusedThread(live: Live): number | undefined {
  const item = vscode.debug.activeStackItem;
  return item?.session.id === live.session.id ? item.threadId : undefined;
}

/** How far up the stack the frame is whose variables the user looks at. */
function depthOf(live: Live): number | null {
  const item = vscode.debug.activeStackItem;
  const frame = item instanceof vscode.DebugStackFrame ? item.frameId : undefined;
  return (frame === undefined ? undefined : live.frames.depth(frame)) ?? null;
}

function needed(row: Row | undefined): Row {
  if (!row) throw new Problem('This row of the call stack is no rank. Choose the row of a rank.');
  return row;
}

async function continueOnly(sessions: Sessions, args: readonly unknown[]): Promise<void> {
  const { live, row } = rankOf(sessions, args);
  await drive(live, [needed(row)], 'continue');
}

async function compare(sessions: Sessions, panel: Comparing, args: readonly unknown[]): Promise<void> {
  const variable = variableItem(args);
  const live = liveOf(sessions, variable?.session);
  const expression = variable?.expression ?? (await askExpression());
  if (expression) await panel.ask(live, { expression, ranks: 'all', frame: depthOf(live) });
}

function askExpression(): Thenable<string | undefined> {
  const editor = vscode.window.activeTextEditor;
  const at = editor && (editor.selection.isEmpty ? wordAt(editor) : editor.selection);
  return vscode.window.showInputBox({
    title: 'Compare across ranks',
    prompt: 'An expression that each rank evaluates where it stands',
    placeHolder: 'loss',
    value: (at && editor.document.getText(at)) ?? '',
  });
}

function wordAt(editor: vscode.TextEditor): vscode.Range | undefined {
  return editor.document.getWordRangeAtPosition(editor.selection.active);
}

async function copy(sessions: Sessions, args: readonly unknown[]): Promise<void> {
  const variable = variableItem(args);
  const { live, row } = rankOf(sessions, args);
  const text = castText(variable ? `p ${variable.expression}` : 'w', row, live.ranks.all());
  await vscode.env.clipboard.writeText(text);
  vscode.window.setStatusBarMessage(`Copied: ${text}`, 4000);
}

export function registerStack(sessions: Sessions, panel: Comparing): vscode.Disposable {
  return vscode.Disposable.from(
    command('dapMux.continueOnly', (...args) => continueOnly(sessions, args)),
    command('dapMux.focus', async (...args) => {
      const { live, row } = rankOf(sessions, args);
      await focus(live, needed(row));
    }),
    command('dapMux.compare', (...args) => compare(sessions, panel, args)),
    command('dapMux.copyAsCast', (...args) => copy(sessions, args)),
  );
}
