/** Help for a breakpoint's condition: rank sets and our words are completed; the language server underlines what is wrong. */

import * as vscode from 'vscode';
import { conditionWords } from '../logic/conditions/words';
import type { RankSessions } from '../ranks/rankSession';

/**
 * Registers the completions. VS Code's box for a condition takes completions from the file's own language at the beginning of the
 * breakpoint's line, whatever has been typed, and puts one in place of all that. So these are given there alone:
 * an extension is told nothing of the box itself.
 */
export function registerConditions(sessions: RankSessions): vscode.Disposable {
  const provideCompletionItems = (_: vscode.TextDocument, position: vscode.Position): vscode.CompletionItem[] => {
    const session = sessions.current;
    if (!session || position.character > 0) return [];
    return conditionWords(session.ranks.all(), session.named).map(({ label, detail, snippet }) => {
      const item = new vscode.CompletionItem({ label, description: detail }, vscode.CompletionItemKind.Keyword);
      item.insertText = new vscode.SnippetString(snippet);
      item.filterText = label.replace(/^@(.*)/, '@$1 $1'); // VS Code takes no letter behind an @ for a beginning
      item.sortText = `0${label}`;
      return item;
    });
  };
  return vscode.languages.registerCompletionItemProvider({ scheme: 'file', language: 'python' }, { provideCompletionItems });
}
