/** The command *Open the Walkthrough*. */

import * as vscode from 'vscode';
import { Command, EXTENSION } from '../constants';

export function registerWalkthroughCommand(): vscode.Disposable {
  return vscode.commands.registerCommand(Command.walkthrough, async () => {
    await vscode.commands.executeCommand('workbench.action.openWalkthrough', `${EXTENSION}#start`);
  });
}
