/** Commands in the context menus of the call stack and the variables. */

import * as vscode from 'vscode';
import type { ComparePanel } from '../compare/panel';
import { Command } from '../constants';
import { castText } from '../logic/ranks/reports';
import type { Row } from '../logic/ranks/rows';
import { setOfRows } from '../logic/ranks/sets';
import { stackItem, variableItem } from '../logic/ranks/stackItems';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { isNode } from '../views/ranksTree';
import { control, focus } from './control';
import { copy, focusedThread, registerCommand, requireRow, requireSession, UserError } from './registerCommand';

/** The rank of a row of the call stack or of the Ranks view, or else the one in focus. */
function rankOf(
  sessions: RankSessions,
  args: readonly unknown[],
): { session: RankSession; row: Row | undefined } {
  const [node] = args;
  if (isNode(node)) return { session: node.session, row: node.rows[0] };
  const item = stackItem(args);
  const session = requireSession(sessions, item.session);
  const threadId = item.threadId ?? focusedThread(session);
  return { session, row: threadId === undefined ? undefined : session.ranks.withThread(threadId) };
}

/** The depth of the frame whose variables the user looks at. */
function focusedDepth(session: RankSession): number | null {
  const item = vscode.debug.activeStackItem;
  const frame = item instanceof vscode.DebugStackFrame ? item.frameId : undefined;
  return (frame === undefined ? undefined : session.frames.depth(frame)) ?? null;
}

function requireRank(row: Row | undefined): Row {
  if (!row) throw new UserError(vscode.l10n.t('This row is not a rank. Select the row of a rank.'));
  return row;
}

async function continueOnly(sessions: RankSessions, args: readonly unknown[]): Promise<void> {
  const { session, row } = rankOf(sessions, args);
  await control(session, [requireRank(row)], 'continue');
}

async function compare(sessions: RankSessions, panel: ComparePanel, args: readonly unknown[]): Promise<void> {
  const [node] = args;
  const variable = variableItem(args);
  const session = isNode(node) ? node.session : requireSession(sessions, variable?.session);
  const ranks = isNode(node) ? setOfRows(node.rows, session.ranks.all()) : 'all';
  const expression = variable?.expression ?? (await inputExpression());
  if (expression) await panel.compare(session, { expression, ranks, frame: focusedDepth(session) });
}

function inputExpression(): Thenable<string | undefined> {
  const editor = vscode.window.activeTextEditor;
  const at = editor && (editor.selection.isEmpty ? wordAt(editor) : editor.selection);
  return vscode.window.showInputBox({
    title: vscode.l10n.t('Compare across ranks'),
    prompt: vscode.l10n.t('An expression, which each rank evaluates where it is stopped'),
    placeHolder: 'loss',
    value: (at && editor.document.getText(at)) ?? '',
  });
}

function wordAt(editor: vscode.TextEditor): vscode.Range | undefined {
  return editor.document.getWordRangeAtPosition(editor.selection.active);
}

export function registerStackCommands(sessions: RankSessions, panel: ComparePanel): vscode.Disposable {
  return vscode.Disposable.from(
    registerCommand(Command.continueOnly, (...args) => continueOnly(sessions, args)),
    registerCommand(Command.focus, async (...args) => {
      const { session, row } = rankOf(sessions, args);
      await focus(session, requireRank(row));
    }),
    registerCommand(Command.compare, (...args) => compare(sessions, panel, args)),
    registerCommand(Command.compareRow, (...args) => {
      requireRow(args); // otherwise all ranks would be compared
      return compare(sessions, panel, args);
    }),
    registerCommand(Command.copyAsCast, (...args) => {
      const variable = variableItem(args);
      const { session, row } = rankOf(sessions, args);
      return copy(castText(variable ? `p ${variable.expression}` : 'w', row, session.ranks.all()));
    }),
  );
}
