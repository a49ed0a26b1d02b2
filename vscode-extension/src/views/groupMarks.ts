/** A mark in its class's hue on every line where ranks stand, at the line's edge and in the overview ruler. */

import * as vscode from 'vscode';
import { classesOf } from '../logic/ranks/classes';
import { colorOf, type GroupMark, groupMarks, HUES, MANY } from '../logic/ranks/hues';
import type { RankSessions } from '../ranks/rankSession';

/** An extension can give no colour of the theme to a picture in the gutter, so the bar is the line's own left border. */
function barOf(hue: number): vscode.TextEditorDecorationType {
  const color = new vscode.ThemeColor(colorOf(hue));
  return vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderStyle: 'solid',
    borderWidth: '0 0 0 4px',
    borderColor: color,
    overviewRulerColor: color,
    overviewRulerLane: vscode.OverviewRulerLane.Left, // beside errors and changes; VS Code draws the focus over all lanes
  });
}

export function registerGroupMarks(sessions: RankSessions): vscode.Disposable {
  const bars = new Map([...HUES, MANY].map((hue) => [hue, barOf(hue)]));
  const drawn = new WeakMap<vscode.TextEditor, string>();
  const update = (): void => {
    const session = sessions.current;
    const marks = session ? groupMarks(session.hues, classesOf(session.ranks.all())) : [];
    for (const editor of vscode.window.visibleTextEditors) {
      const here = marks.filter(({ path }) => isAt(editor, path));
      const key = JSON.stringify(here);
      if ((drawn.get(editor) ?? '[]') === key) continue; // drawn anew, it would leave its line while the text is edited
      drawn.set(editor, key);
      for (const [hue, bar] of bars) editor.setDecorations(bar, rangesOf(editor, here.filter((mark) => mark.hue === hue)));
    }
  };
  return vscode.Disposable.from(
    ...bars.values(),
    sessions.onDidChange(update),
    vscode.window.onDidChangeVisibleTextEditors(update),
  );
}

export function isAt({ document }: vscode.TextEditor, path: string): boolean {
  return document.uri.toString() === vscode.Uri.file(path).toString();
}

function rangesOf({ document }: vscode.TextEditor, marks: readonly GroupMark[]): vscode.Range[] {
  return marks.map(({ line }) => document.lineAt(Math.min(line, document.lineCount) - 1).range);
}
