/** Commands that move, name or let go ranks, from the Ranks view and the palette. */

import * as vscode from 'vscode';
import { problemsOf, type CastBody } from '../logic/ranks/castText';
import { keyOf, type Row } from '../logic/ranks/rows';
import { setOfRows, whichRanks } from '../logic/ranks/sets';
import { askName, askRanks } from './asking';
import { command, liveOf, Problem } from './attempt';
import type { Live, Sessions } from './live';
import { isNode, type Node, type RanksTree } from './ranksTree';

type Word = 'continue' | 'pause' | 'next';
const PDB: Readonly<Record<Word, string>> = { continue: 'c', pause: 'pause', next: 'n' };

/** Let exactly these ranks go on, pause or step: one request, however many they are. */
export async function drive(live: Live, rows: readonly Row[], word: Word): Promise<void> {
  const mains = rows.filter(({ worker }) => worker === null);
  // a rank set names a rank with its workers, so these are asked by their own row
  const workers = rows.filter(({ worker }) => worker !== null);
  const asked = workers.map(({ threadId }) => live.request(word, { threadId, singleThread: true }));
  if (mains.length > 0) {
    const ranks = setOfRows(mains, live.ranks.all());
    const body = await live.request<CastBody>('cast', { ranks, command: PDB[word] });
    live.refresh();
    const problems = problemsOf(body);
    if (problems) throw new Problem(problems);
  }
  await Promise.all(asked);
}

export async function focus(live: Live, row: Row): Promise<void> {
  const { rank, group, worker } = row;
  await live.request('focus', worker === null ? { rank, group } : { rank, group, worker });
}

/** The ranks that a command of the view is for: its row, with the others that are marked. */
function chosen(tree: RanksTree, args: readonly unknown[]): { live: Live; rows: readonly Row[] } {
  const [node] = args;
  const marked = Array.isArray(args[1]) ? args[1].filter(isNode) : tree.selection;
  const nodes = isNode(node) ? (marked.some((one) => sameNode(one, node)) ? marked : [node]) : marked;
  const [first] = nodes;
  if (!first) throw new Problem('Select ranks in the Ranks view first.');
  const rows = new Map(nodes.flatMap((one) => one.rows).map((row) => [keyOf(row), row]));
  return { live: first.live, rows: [...rows.values()] };
}

function sameNode(one: Node, other: Node): boolean {
  return one.found?.key === other.found?.key && one.rows[0]?.threadId === other.rows[0]?.threadId;
}

export async function define(live: Live, ranks: string): Promise<void> {
  const name = await askName(ranks);
  if (name === undefined) return;
  const plain = name.replace(/^@/, '');
  await live.request('groups', { define: { name: plain, ranks } });
  void vscode.window.showInformationMessage(`@${plain} means ${whichRanks(ranks)} from now on.`);
}

async function release(sessions: Sessions): Promise<void> {
  const live = liveOf(sessions);
  const ranks = await askRanks(live, 'Release ranks: which ones?');
  if (ranks === undefined) return;
  const question = `Release ${ranks}? These ranks run on without a debugger.`;
  const answer = await vscode.window.showWarningMessage(question, { modal: true }, 'Release');
  if (answer === 'Release') await live.request('release', { ranks });
}

export function registerDriving(sessions: Sessions, tree: RanksTree): vscode.Disposable {
  const words = (['continue', 'pause', 'next'] as const).map((word) =>
    command(`dapMux.rank.${word}`, async (...args) => {
      const { live, rows } = chosen(tree, args);
      await drive(live, rows, word);
    }),
  );
  return vscode.Disposable.from(
    ...words,
    command('dapMux.newGroup', async (...args) => {
      const { live, rows } = chosen(tree, args);
      await define(live, setOfRows(rows, live.ranks.all()));
    }),
    command('dapMux.releaseRanks', () => release(sessions)),
  );
}
