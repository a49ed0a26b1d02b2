/** Marks the line of the focused rank, while ranks are stopped at several lines of visible files. */

import * as vscode from 'vscode';
import { focusMark, type FocusMark } from '../logic/ranks/focusMark';
import type { RankSessions } from '../ranks/rankSession';
import { isAt } from './groupMarks';

/** The colour of VS Code's own arrow at this line. */
const LINE_COLOR = new vscode.ThemeColor('debugIcon.breakpointCurrentStackframeForeground');
const TEXT_COLOR = new vscode.ThemeColor('editor.foreground');

export function registerFocusMark(sessions: RankSessions): vscode.Disposable {
  const decoration = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderStyle: 'solid',
    borderWidth: '1px 0',
    borderColor: LINE_COLOR,
    overviewRulerColor: LINE_COLOR,
    overviewRulerLane: vscode.OverviewRulerLane.Full,
  });
  const drawn = new WeakMap<vscode.TextEditor, string>();
  const update = (): void => {
    const mark = currentMark(sessions);
    for (const editor of vscode.window.visibleTextEditors) {
      const wanted = mark && isAt(editor, mark.path) ? mark : undefined;
      const key = JSON.stringify(wanted);
      if (drawn.get(editor) === key) continue; // drawn anew, it would leave its line while the text is edited
      drawn.set(editor, key);
      editor.setDecorations(decoration, wanted ? [optionsFor(editor, wanted)] : []);
    }
  };
  return vscode.Disposable.from(
    decoration,
    sessions.onDidChange(update),
    vscode.debug.onDidChangeActiveStackItem(update),
    vscode.window.onDidChangeVisibleTextEditors(update),
  );
}

function currentMark(sessions: RankSessions): FocusMark | undefined {
  const item = vscode.debug.activeStackItem;
  const session = sessions.find(item?.session.id);
  if (!item || !session) return undefined;
  const isVisible = (path: string): boolean => vscode.window.visibleTextEditors.some((editor) => isAt(editor, path));
  return focusMark(session.ranks.all(), item.threadId, isVisible);
}

function optionsFor({ document }: vscode.TextEditor, { line, text }: FocusMark): vscode.DecorationOptions {
  const { range } = document.lineAt(Math.min(line, document.lineCount) - 1);
  const after = { contentText: text, color: TEXT_COLOR, fontWeight: 'bold', margin: '0 0 0 2ch' };
  return { range, renderOptions: { after } };
}
