/** What of the extension is to be seen: views, status bar, menus. */

import type * as vscode from 'vscode';

export function registerViews(_context: vscode.ExtensionContext): void {
  // nothing yet
}
