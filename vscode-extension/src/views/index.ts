/** Registers the views, the status bar and the commands for ranks. */

import type * as vscode from 'vscode';
import { ArrayPanel } from '../array/panel';
import { registerCastCommands } from '../commands/cast';
import { registerControlCommands } from '../commands/control';
import { registerScopeCommands } from '../commands/scope';
import { registerStackCommands } from '../commands/stack';
import { registerStacksCommands } from '../commands/stacks';
import { ComparePanel } from '../compare/panel';
import type { RankSessions } from '../ranks/rankSession';
import { MeshPanel } from '../mesh/panel';
import { WatchPanel } from '../watch/panel';
import { WhyPanel } from '../why/panel';
import { registerConditions } from './conditions';
import { registerDeathNotifications } from './deathNotifications';
import { registerFocusMark } from './focusMark';
import { registerGroupMarks } from './groupMarks';
import { InlineValues } from './inlineValues';
import { RanksTree } from './ranksTree';
import { StacksTree } from './stacksTree';
import { rememberDebugpy } from './rememberDebugpy';
import { registerStatusBar } from './statusBar';
import { WrongNumbers } from './wrongNumbers';

export function registerRanks(context: vscode.ExtensionContext, sessions: RankSessions): void {
  const tree = new RanksTree(sessions, context.workspaceState);
  const panel = new ComparePanel(sessions, context.extensionUri);
  const why = new WhyPanel(sessions, context.extensionUri);
  context.subscriptions.push(
    tree,
    panel,
    new StacksTree(sessions),
    new WatchPanel(sessions, panel, context.extensionUri),
    why,
    new MeshPanel(sessions, why, context.extensionUri),
    new ArrayPanel(sessions, context.extensionUri),
    new InlineValues(sessions),
    new WrongNumbers(sessions, panel),
    registerConditions(sessions),
    registerDeathNotifications(sessions),
    registerStatusBar(sessions),
    registerFocusMark(sessions),
    registerGroupMarks(sessions),
    rememberDebugpy(sessions, context.workspaceState),
    registerCastCommands(sessions),
    registerControlCommands(sessions, tree),
    registerScopeCommands(sessions),
    registerStackCommands(sessions, panel),
    registerStacksCommands(),
  );
}
