/** The debugger type `dap-mux`: where its adapter is. */

import * as vscode from 'vscode';
import { reachOf } from './logic/reach';

export function registerDebugging(context: vscode.ExtensionContext): void {
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory('dap-mux', { createDebugAdapterDescriptor }),
  );
}

function createDebugAdapterDescriptor(session: vscode.DebugSession): vscode.DebugAdapterDescriptor {
  const reach = reachOf(session.configuration);
  if (reach.kind === 'server') return new vscode.DebugAdapterServer(reach.port, reach.host);
  const python: unknown = session.configuration['python'];
  return new vscode.DebugAdapterExecutable(typeof python === 'string' ? python : 'python3', [
    '-m',
    'dap_mux',
    'adapter',
  ]);
}
