/** When nothing listens where a configuration points: offers what the user may have meant. */

import { setTimeout as delay } from 'node:timers/promises';
import * as vscode from 'vscode';
import { Command } from '../constants';
import { type AdapterLocation, locateAdapter } from '../logic/adapterLocation';
import { attachOffers, describeLocation } from '../logic/offers';
import { connectOf, isAt, labelOf, type RunningSession, startOf } from '../logic/sessions';
import { runningSessions } from '../runningSessions';
import { listens } from './reachable';

const POLL_INTERVAL_MS = 500;

type Folder = vscode.WorkspaceFolder | undefined;
type Choice = vscode.MessageItem & { readonly run: () => Thenable<unknown> };

/** Addresses that this window waits for, or attached to after it had waited. */
const awaited = new Set<AdapterLocation>();

/** Whether the window attaches to this session anyway, because its user has chosen to wait for it. */
export function isAwaited(session: RunningSession): boolean {
  return [...awaited].some((location) => isAt(session, location));
}

/** Ask what to do instead, and do it. */
export async function offerOthers(folder: Folder, configuration: vscode.DebugConfiguration): Promise<void> {
  const address = describeLocation(locateAdapter(configuration));
  const offers = attachOffers(await runningSessions(folder, configuration['python']));
  const choices: Choice[] = [
    ...offers.map((session) => ({
      title: vscode.l10n.t('Attach to {0}', session.port),
      run: () => vscode.debug.startDebugging(folder, { ...configuration, connect: connectOf(session) }),
    })),
    {
      title: vscode.l10n.t('Start Ranks of This File'),
      run: () => vscode.commands.executeCommand(Command.launch),
    },
    { title: vscode.l10n.t('Wait'), run: () => waitAndAttach(folder, configuration, address) },
  ];
  const running = offers.map((session) => vscode.l10n.t('A session has been running at {0} since {1}.', labelOf(session), startOf(session)));
  const wait = vscode.l10n.t('Wait: attach as soon as a session listens on {0}.', address);
  const detail = [...running, wait].join('\n');
  const message = vscode.l10n.t('{0}: no session is listening on {1}.', configuration.name, address);
  await (await vscode.window.showErrorMessage(message, { modal: true, detail }, ...choices))?.run();
}

async function waitAndAttach(
  folder: Folder,
  configuration: vscode.DebugConfiguration,
  address: string,
): Promise<void> {
  const title = vscode.l10n.t('Waiting for a session on {0}', address);
  const location = locateAdapter(configuration);
  const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  awaited.add(location);
  const found = await vscode.window.withProgress(options, (_, cancelled) => becomesReachable(location, cancelled));
  const started = found && (await vscode.debug.startDebugging(folder, configuration));
  if (started) forgetWhenOver(location, vscode.debug.activeDebugSession);
  else awaited.delete(location);
}

async function becomesReachable(location: AdapterLocation, cancelled: vscode.CancellationToken): Promise<boolean> {
  while (!cancelled.isCancellationRequested) {
    if (await listens(location)) return true;
    await delay(POLL_INTERVAL_MS);
  }
  return false;
}

function forgetWhenOver(location: AdapterLocation, session: vscode.DebugSession | undefined): void {
  const listener = vscode.debug.onDidTerminateDebugSession(({ id }) => {
    if (session !== undefined && id !== session.id) return;
    awaited.delete(location);
    listener.dispose();
  });
}
