/**
 * Remembers, for each workspace, that configurations of the type `debugpy` have ranks here: then our
 * views are there before such a session, as they are for the type `dap-mux`. A view that is added
 * while a user drags an edge in the side bar blanks all lists there (VS Code 1.100).
 */

import * as vscode from 'vscode';
import { ContextKey } from '../constants';
import type { RankSessions } from '../ranks/rankSession';

const REMEMBERED = 'debugpy has ranks'; // in the workspace's memory

export function rememberDebugpy(sessions: RankSessions, memory: vscode.Memento): vscode.Disposable {
  const announce = (): void => {
    void vscode.commands.executeCommand('setContext', ContextKey.debugpyHasRanks, true);
  };
  if (memory.get<boolean>(REMEMBERED)) announce();
  return sessions.onDidChange(() => {
    if (sessions.current?.debugSession.type !== 'debugpy' || memory.get<boolean>(REMEMBERED)) return;
    void memory.update(REMEMBERED, true);
    announce();
  });
}
