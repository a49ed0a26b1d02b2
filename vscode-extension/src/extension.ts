/**
 * The extension's entry: each part registers itself, and VS Code disposes of it.
 *
 * `logic/` decides and is pure; the rest asks VS Code and carries out. The adapter is `dap-mux
 * adapter` in the workspace's Python, or a session that runs already: this extension only starts it.
 */

import type * as vscode from 'vscode';
import { listenForAnnouncements } from './announcements';
import { registerDebugging } from './debugging';
import { registerDoctor } from './doctor';
import { startLanguageClient } from './language';
import { registerViews } from './views/index';

export function activate(context: vscode.ExtensionContext): void {
  registerDebugging(context);
  registerViews(context);
  registerDoctor(context);
  listenForAnnouncements(context);
  startLanguageClient(context);
}
