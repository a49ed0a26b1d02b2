/** What of the extension is to be seen: views, status bar, menus. */

import type * as vscode from 'vscode';
import { Comparing } from '../compare/panel';
import { registerCasting } from './casting';
import { registerDriving } from './driving';
import { Sessions } from './live';
import { RanksTree } from './ranksTree';
import { registerStack } from './stack';
import { registerStatusBar } from './statusBar';

export function registerViews(context: vscode.ExtensionContext): void {
  const sessions = new Sessions();
  const tree = new RanksTree(sessions);
  const panel = new Comparing(sessions, context.extensionUri);
  context.subscriptions.push(
    sessions,
    tree,
    panel,
    registerStatusBar(sessions),
    registerCasting(sessions),
    registerDriving(sessions, tree),
    registerStack(sessions, panel),
  );
}
