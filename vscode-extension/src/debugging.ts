/** The debugger type `dap-mux`: its configurations, and where the adapter of each is. */

import path from 'node:path';
import * as vscode from 'vscode';
import { completedCluster } from './cluster';
import { adapterWords, type Command } from './logic/adapterCommand';
import { attachTo, completed, type Configuration, isCount, isEmpty, LAUNCH, POD, REMOTE, TYPE } from './logic/configurations';
import { ConfigurationError, reachOf } from './logic/reach';
import { labelOf } from './logic/sessions';
import { findDapMux } from './python';
import { runningSessions } from './sessions';

type Folder = vscode.WorkspaceFolder | undefined;

/** The command found for a configuration; goes with it from `resolve` to the factory. */
const COMMAND = '__dapMux';

export function registerDebugging(context: vscode.ExtensionContext): void {
  const { Dynamic, Initial } = vscode.DebugConfigurationProviderTriggerKind;
  const provider = new Configurations();
  context.subscriptions.push(
    vscode.debug.registerDebugConfigurationProvider(TYPE, provider, Initial),
    vscode.debug.registerDebugConfigurationProvider(
      TYPE,
      { provideDebugConfigurations: dynamicConfigurations },
      Dynamic,
    ),
    vscode.debug.registerDebugAdapterDescriptorFactory(TYPE, { createDebugAdapterDescriptor }),
    vscode.commands.registerCommand('dapMux.attach', attachToRunning),
    vscode.commands.registerCommand('dapMux.launch', launchThisFile),
    vscode.commands.registerCommand('dapMux.walkthrough', openWalkthrough),
  );
}

class Configurations implements vscode.DebugConfigurationProvider {
  provideDebugConfigurations(): vscode.DebugConfiguration[] {
    return [POD, REMOTE, LAUNCH];
  }

  /** Before `${variables}` are filled in. Undefined: the user has changed their mind. */
  async resolveDebugConfiguration(
    folder: Folder,
    configuration: vscode.DebugConfiguration,
  ): Promise<vscode.DebugConfiguration | undefined> {
    return isEmpty(configuration) ? await choose(folder) : configuration;
  }

  /** After that; a message of ours takes the place of VS Code's "cannot start". */
  async resolveDebugConfigurationWithSubstitutedVariables(
    folder: Folder,
    configuration: vscode.DebugConfiguration,
  ): Promise<vscode.DebugConfiguration | undefined> {
    try {
      return await resolved(folder, configuration);
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      void vscode.window.showErrorMessage(`${configuration.name}: ${error.message}`);
      return undefined;
    }
  }
}

async function resolved(
  folder: Folder,
  configuration: vscode.DebugConfiguration,
): Promise<vscode.DebugConfiguration | undefined> {
  const complete = completed(configuration, folder?.uri.fsPath);
  const reach = reachOf(complete);
  if (reach.kind === 'choose') {
    const chosen = await chooseRunning(folder);
    return chosen && { ...complete, connect: chosen['connect'] };
  }
  if (reach.kind !== 'adapter') return complete;
  const command = await findDapMux(folder, complete['python']);
  return command && withCluster({ ...complete, [COMMAND]: command });
}

/** The same with its pods chosen. */
async function withCluster(
  configuration: vscode.DebugConfiguration,
): Promise<vscode.DebugConfiguration | undefined> {
  if (!configuration['cluster']) return configuration;
  const cluster = await completedCluster(configuration['cluster']);
  return cluster ? { ...configuration, cluster } : undefined;
}

/** F5 without a launch.json. */
async function choose(folder: Folder): Promise<vscode.DebugConfiguration | undefined> {
  const offers = [...(await dynamicConfigurations(folder)), POD, REMOTE];
  const items = offers.map((each) => ({ label: each.name, description: describe(each), each }));
  const chosen = await vscode.window.showQuickPick(items, {
    placeHolder: 'Which ranks do you want to debug?',
    matchOnDescription: true,
  });
  return chosen?.each;
}

function describe(configuration: vscode.DebugConfiguration): string {
  if (configuration.request === 'launch') return 'starts them on this machine';
  if (configuration === POD) return 'asks for namespace and pod, and forwards its ports';
  return configuration === REMOTE ? 'a job elsewhere, at localhost:5677' : 'runs on this machine';
}

/** The sessions that run now, and a start of the open file. */
async function dynamicConfigurations(folder: Folder): Promise<vscode.DebugConfiguration[]> {
  const sessions = await runningSessions(folder);
  return [...sessions.map((session) => attachTo(session)), LAUNCH];
}

async function chooseRunning(folder: Folder): Promise<Configuration | undefined> {
  const sessions = await runningSessions(folder);
  const [only, ...more] = sessions;
  if (!only) {
    throw new ConfigurationError(
      'no session of dap-mux is running on this machine. Start a job with "dap-mux run", or say in ' +
        'launch.json where it is: "connect" for a session elsewhere, "endpoints" for its ranks',
    );
  }
  if (!more.length) return attachTo(only);
  const items = sessions.map((each) => ({ label: labelOf(each), description: `process ${each.pid}`, each }));
  const chosen = await vscode.window.showQuickPick(items, { placeHolder: 'Attach to which session?' });
  return chosen && attachTo(chosen.each);
}

/** The command *Attach to a Running Session*. */
async function attachToRunning(): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0];
  const name = 'Attach to a running session';
  await vscode.debug.startDebugging(folder, { name, type: TYPE, request: 'attach' });
}

/** The command *Start Ranks of This File*. */
async function launchThisFile(): Promise<void> {
  const file = vscode.window.activeTextEditor?.document;
  if (file?.languageId !== 'python') {
    void vscode.window.showInformationMessage('Open the Python script that the ranks are to run.');
    return;
  }
  const count = await vscode.window.showInputBox({
    prompt: 'How many ranks?',
    value: '4',
    validateInput: (text) => (isCount(text) ? undefined : 'a whole number from 1'),
  });
  if (count === undefined) return;
  const folder = vscode.workspace.getWorkspaceFolder(file.uri);
  const cwd = folder?.uri.fsPath ?? path.dirname(file.fileName);
  const name = `${count} ranks of ${path.basename(file.fileName)}`;
  const program = file.fileName;
  const nproc = Number(count);
  await vscode.debug.startDebugging(folder, { ...LAUNCH, name, program, nproc, cwd });
}

async function openWalkthrough(): Promise<void> {
  await vscode.commands.executeCommand('workbench.action.openWalkthrough', 'dap-mux.dap-mux#start');
}

function createDebugAdapterDescriptor(
  session: vscode.DebugSession,
): vscode.DebugAdapterDescriptor | undefined {
  const reach = reachOf(session.configuration);
  if (reach.kind === 'server') return new vscode.DebugAdapterServer(reach.port, reach.host);
  if (reach.kind === 'socket') return new vscode.DebugAdapterNamedPipeServer(reach.path);
  const command = session.configuration[COMMAND] as Command | undefined;
  if (!command) throw new ConfigurationError(`no Python with dap-mux for ${session.name}`);
  const [program, ...words] = command;
  const cwd = session.workspaceFolder?.uri.fsPath;
  return new vscode.DebugAdapterExecutable(
    program,
    [...words, ...adapterWords(session.configuration)],
    cwd === undefined ? {} : { cwd },
  );
}
