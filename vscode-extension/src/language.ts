/** The language server, where the workspace's Python has one. */

import type * as vscode from 'vscode';

export function startLanguageClient(_context: vscode.ExtensionContext): void {
  // nothing yet
}
