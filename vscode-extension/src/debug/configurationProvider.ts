/** Debug configurations of the type `dap-mux`: those offered, and what is added to the user's. */

import * as vscode from 'vscode';
import { Setting, SETTINGS } from '../constants';
import { ConfigurationError, locateAdapter, NotReadyError } from '../logic/adapterLocation';
import { attachTo, completed, isEmpty, LAUNCH, POD, REMOTE, TYPE } from '../logic/configurations';
import { findDapMux } from '../python';
import { startOf } from '../logic/sessions';
import { runningSessions } from '../runningSessions';
import { DAP_MUX_COMMAND } from './adapterFactory';
import { offerOthers } from './noSession';
import { completeCluster } from './podPicker';
import { mayListen } from './reachable';
import { pickRunningSession } from './sessionPicker';

type Folder = vscode.WorkspaceFolder | undefined;

export function registerConfigurationProvider(): vscode.Disposable {
  const { Dynamic, Initial } = vscode.DebugConfigurationProviderTriggerKind;
  const dynamic = { provideDebugConfigurations: dynamicConfigurations };
  return vscode.Disposable.from(
    vscode.debug.registerDebugConfigurationProvider(TYPE, new ConfigurationProvider(), Initial),
    vscode.debug.registerDebugConfigurationProvider(TYPE, dynamic, Dynamic),
  );
}

class ConfigurationProvider implements vscode.DebugConfigurationProvider {
  provideDebugConfigurations(): vscode.DebugConfiguration[] {
    return [POD, REMOTE, LAUNCH];
  }

  /** Called before `${variables}` are substituted. Undefined cancels the start. */
  async resolveDebugConfiguration(
    folder: Folder,
    configuration: vscode.DebugConfiguration,
  ): Promise<vscode.DebugConfiguration | undefined> {
    return isEmpty(configuration) ? await pickConfiguration(folder) : configuration;
  }

  /** Called after that. Errors are shown here, because VS Code would only say "cannot start". */
  async resolveDebugConfigurationWithSubstitutedVariables(
    folder: Folder,
    configuration: vscode.DebugConfiguration,
  ): Promise<vscode.DebugConfiguration | undefined> {
    try {
      return await resolve(folder, configuration);
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      void explain(error, folder, configuration);
      return undefined;
    }
  }
}

/** Without a button VS Code would show one line of the message. */
async function explain(error: ConfigurationError, folder: Folder, configuration: vscode.DebugConfiguration): Promise<void> {
  const tryAgain = vscode.l10n.t('Try Again');
  const open = vscode.l10n.t('Open launch.json');
  const button = error instanceof NotReadyError ? tryAgain : open;
  const chosen = await vscode.window.showErrorMessage(`${configuration.name}: ${error.message}`, button);
  if (chosen === tryAgain) await vscode.debug.startDebugging(folder, configuration);
  else if (chosen === open) await vscode.commands.executeCommand('workbench.action.debug.configure');
}

async function resolve(
  folder: Folder,
  configuration: vscode.DebugConfiguration,
): Promise<vscode.DebugConfiguration | undefined> {
  const wanted: vscode.DebugConfiguration = { ...valuesAcrossRanks(folder), ...configuration };
  const complete = completed(wanted, folder?.uri.fsPath);
  const location = locateAdapter(complete);
  if (location.kind === 'choose') {
    const session = await pickRunningSession(folder);
    return session && { ...complete, connect: attachTo(session)['connect'] };
  }
  if (location.kind !== 'adapter') {
    if (await mayListen(location)) return complete;
    void offerOthers(folder, complete);
    return undefined;
  }
  const command = await findDapMux(folder, complete['python']);
  return command && withPods({ ...complete, [DAP_MUX_COMMAND]: command });
}

/** The user's setting, if there is one: the session's own configuration counts otherwise. */
function valuesAcrossRanks(folder: Folder): { valuesAcrossRanks?: string } {
  const found = vscode.workspace.getConfiguration(SETTINGS, folder?.uri).inspect<string>(Setting.valuesAcrossRanks);
  const chosen = found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
  return chosen === undefined ? {} : { valuesAcrossRanks: chosen };
}

async function withPods(
  configuration: vscode.DebugConfiguration,
): Promise<vscode.DebugConfiguration | undefined> {
  if (!configuration['cluster']) return configuration;
  const cluster = await completeCluster(configuration['cluster']);
  return cluster ? { ...configuration, cluster } : undefined;
}

/** For F5 without a launch.json. */
async function pickConfiguration(folder: Folder): Promise<vscode.DebugConfiguration | undefined> {
  const running = (await runningSessions(folder)).map((session) => ({
    label: attachTo(session).name,
    description: vscode.l10n.t('running on this machine since {0}', startOf(session)),
    configuration: attachTo(session),
  }));
  const others = [LAUNCH, POD, REMOTE].map((configuration) => ({
    label: configuration.name,
    description: describe(configuration),
    configuration,
  }));
  const items = [...running.reverse(), ...others];
  const picked = await vscode.window.showQuickPick(items, {
    placeHolder: vscode.l10n.t('Which ranks do you want to debug?'),
    matchOnDescription: true,
  });
  return picked?.configuration;
}

function describe(configuration: vscode.DebugConfiguration): string {
  if (configuration.request === 'launch') return vscode.l10n.t('starts ranks on this machine');
  if (configuration === POD) return vscode.l10n.t('asks for a pod, and forwards its ports');
  return vscode.l10n.t('a job elsewhere, at localhost:5677');
}

/** The running sessions, and a launch of the open file. */
async function dynamicConfigurations(folder: Folder): Promise<vscode.DebugConfiguration[]> {
  const sessions = await runningSessions(folder);
  return [...sessions.map((session) => attachTo(session)), LAUNCH];
}
