/** Starts the debug adapter of a session, or connects to the one that is running. */

import * as vscode from 'vscode';
import { log } from '../log';
import { adapterArguments, type Command } from '../logic/adapterCommand';
import { ConfigurationError, locateAdapter } from '../logic/adapterLocation';
import { TYPE } from '../logic/configurations';

/** Where the configuration provider stores the dap-mux command that it found. */
export const DAP_MUX_COMMAND = '__dapMux';

export function registerAdapterFactory(): vscode.Disposable {
  return vscode.debug.registerDebugAdapterDescriptorFactory(TYPE, { createDebugAdapterDescriptor });
}

function createDebugAdapterDescriptor(session: vscode.DebugSession): vscode.DebugAdapterDescriptor {
  const location = locateAdapter(session.configuration);
  if (location.kind === 'server') return new vscode.DebugAdapterServer(location.port, location.host);
  if (location.kind === 'socket') return new vscode.DebugAdapterNamedPipeServer(location.path);
  return adapterExecutable(session);
}

function adapterExecutable(session: vscode.DebugSession): vscode.DebugAdapterExecutable {
  const command = session.configuration[DAP_MUX_COMMAND] as Command | undefined;
  if (!command) throw new ConfigurationError(`no Python with dap-mux for ${session.name}`);
  const [program, ...first] = command;
  const args = [...first, ...adapterArguments(session.configuration)];
  const cwd = session.workspaceFolder?.uri.fsPath;
  log.info(`adapter of "${session.name}": ${[program, ...args].join(' ')}`);
  return new vscode.DebugAdapterExecutable(program, args, cwd === undefined ? {} : { cwd });
}
