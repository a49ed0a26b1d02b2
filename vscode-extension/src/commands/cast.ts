/** The commands *Cast to Ranks* and *List Ranks*, which show their results in an output channel. */

import * as vscode from 'vscode';
import { Command } from '../constants';
import { type CastBody, castReport, listReport } from '../logic/ranks/reports';
import type { Listing } from '../logic/ranks/rows';
import type { RankSessions } from '../ranks/rankSession';
import { pickCommand, pickRankSet } from '../ranks/rankSetPicker';
import { registerCommand, requireSession } from './registerCommand';

/** `known`: which ranks, where a page has been asked for them. */
async function cast(sessions: RankSessions, output: vscode.OutputChannel, known: unknown): Promise<void> {
  const session = requireSession(sessions);
  const ranks = typeof known === 'string' ? known : await pickRankSet(session, vscode.l10n.t('Cast to ranks (1/2): which ranks?'));
  if (ranks === undefined) return;
  const title = vscode.l10n.t('Cast to {0} (2/2): which command?', ranks);
  const command = (await pickCommand(session, ranks, title))?.trim();
  if (command === undefined) return;
  const body = await session.request<CastBody>('cast', { ranks, command });
  output.appendLine(`${castReport(ranks, command, body)}\n`);
  output.show(true);
}

async function list(sessions: RankSessions, output: vscode.OutputChannel): Promise<void> {
  const { ranks } = await requireSession(sessions).request<Listing>('list');
  output.appendLine(`${listReport(ranks)}\n`);
  output.show(true);
}

export function registerCastCommands(sessions: RankSessions): vscode.Disposable {
  const output = vscode.window.createOutputChannel(vscode.l10n.t('Ranks'));
  return vscode.Disposable.from(
    output,
    registerCommand(Command.cast, (known) => cast(sessions, output, known)),
    registerCommand(Command.listRanks, () => list(sessions, output)),
  );
}
