/** `Cast to ranks…` and `List ranks`: what they answer is shown in an output channel. */

import * as vscode from 'vscode';
import { castReport, listReport, type CastBody } from '../logic/ranks/castText';
import type { Listing } from '../logic/ranks/rows';
import { askCommand, askRanks } from './asking';
import { command, liveOf } from './attempt';
import type { Sessions } from './live';

async function cast(sessions: Sessions, output: vscode.OutputChannel): Promise<void> {
  const live = liveOf(sessions);
  const ranks = await askRanks(live, 'Cast to ranks (1/2): which ranks?');
  if (ranks === undefined) return;
  const said = await askCommand(live, ranks, `Cast to ${ranks} (2/2): what should they do?`);
  if (said === undefined) return;
  const text = said.trim();
  const body = await live.request<CastBody>('cast', { ranks, command: text });
  output.appendLine(`${castReport(ranks, text, body)}\n`);
  output.show(true);
}

async function list(sessions: Sessions, output: vscode.OutputChannel): Promise<void> {
  const { ranks } = await liveOf(sessions).request<Listing>('list');
  output.appendLine(`${listReport(ranks)}\n`);
  output.show(true);
}

export function registerCasting(sessions: Sessions): vscode.Disposable {
  const output = vscode.window.createOutputChannel('Ranks');
  return vscode.Disposable.from(
    output,
    command('dapMux.cast', () => cast(sessions, output)),
    command('dapMux.listRanks', () => list(sessions, output)),
  );
}
