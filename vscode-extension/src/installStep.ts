/**
 * Ticks the walkthrough's first step where dap-mux is installed.
 *
 * VS Code ticks it when a context key becomes true, but never if that was true as it registered
 * the walkthrough, which it does seconds after the page has opened (measured with 1.100). So the key
 * is true for moments only, again and again while that may happen.
 */

import { setTimeout as pause } from 'node:timers/promises';
import * as vscode from 'vscode';
import { ContextKey } from './constants';

const TIMES = 10;
const PAUSE_MS = 1_000;

/** Returns what is to be told whether it is. */
export function tickInstallStep(context: vscode.ExtensionContext): (installed: boolean) => void {
  let installed = false;
  const tick = async (): Promise<void> => {
    for (let time = 0; time < TIMES && installed; time++) {
      await vscode.commands.executeCommand('setContext', ContextKey.installed, true);
      await vscode.commands.executeCommand('setContext', ContextKey.installed, false);
      await pause(PAUSE_MS);
    }
  };
  context.subscriptions.push(
    vscode.window.tabGroups.onDidChangeTabs(({ opened }) => {
      if (opened.some(isPage)) void tick();
    }),
  );
  return (now) => {
    installed = now;
    if (vscode.window.tabGroups.all.some(({ tabs }) => tabs.some(isPage))) void tick();
  };
}

/** Whether it may be a walkthrough: of pages of VS Code's own, a tab says no more. */
function isPage({ input }: vscode.Tab): boolean {
  return input === undefined;
}
