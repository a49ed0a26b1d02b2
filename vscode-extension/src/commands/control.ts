/** Commands that control, name or release ranks, from the Ranks view and the palette. */

import * as vscode from 'vscode';
import { Command, RANK_COMMAND_PREFIX } from '../constants';
import { type CastBody, problemsOf } from '../logic/ranks/reports';
import { keyOf, type Row } from '../logic/ranks/rows';
import { setOfRows, whichRanks } from '../logic/ranks/sets';
import type { RankSession, RankSessions } from '../ranks/rankSession';
import { inputName, pickRankSet } from '../ranks/rankSetPicker';
import { isNode, type Node, type RanksTree } from '../views/ranksTree';
import { registerCommand, requireRow, requireSession, UserError } from './registerCommand';

const PDB_COMMANDS = { continue: 'c', pause: 'pause', next: 'n', stepIn: 's', stepOut: 'r' } as const;
type Action = keyof typeof PDB_COMMANDS;
const ACTIONS = Object.keys(PDB_COMMANDS) as Action[];

/** Continue, pause or step exactly these ranks, with one request however many they are. */
export async function control(session: RankSession, rows: readonly Row[], action: Action): Promise<void> {
  const mains = rows.filter(({ worker }) => worker === null);
  // a rank set selects ranks together with their workers, so workers need requests of their own
  const workers = rows.filter(({ worker }) => worker !== null);
  const requests = workers.map(({ threadId }) => session.request(action, { threadId, singleThread: true }));
  if (mains.length > 0) {
    const ranks = setOfRows(mains, session.ranks.all());
    const body = await session.request<CastBody>('cast', { ranks, command: PDB_COMMANDS[action] });
    session.refresh();
    const problems = problemsOf(body);
    if (problems) throw new UserError(problems);
  }
  await Promise.all(requests);
}

export async function focus(session: RankSession, row: Row): Promise<void> {
  const { rank, group, worker } = row;
  await session.request('focus', worker === null ? { rank, group } : { rank, group, worker });
}

/** The ranks that a command of the view is for: of the clicked row, or of all selected rows. */
function selectedRanks(
  tree: RanksTree,
  args: readonly unknown[],
): { session: RankSession; rows: readonly Row[]; ranks: string } {
  const [node] = args;
  const selection = Array.isArray(args[1]) ? args[1].filter(isNode) : tree.selection;
  const clickedAlone = isNode(node) && !selection.some((each) => sameNode(each, node));
  const nodes = clickedAlone ? [node] : selection;
  const [first] = nodes;
  if (!first) throw new UserError(vscode.l10n.t('Select ranks in the Ranks view first.'));
  const { session } = first;
  const rows = [...new Map(nodes.flatMap((each) => each.rows).map((row) => [keyOf(row), row])).values()];
  return { session, rows, ranks: setOfRows(rows, session.ranks.all()) };
}

function sameNode(one: Node, other: Node): boolean {
  const same = one.rankClass?.key === other.rankClass?.key && one.rows.length === other.rows.length;
  return same && one.rows[0]?.threadId === other.rows[0]?.threadId;
}

export async function defineGroup(session: RankSession, ranks: string): Promise<void> {
  const name = await inputName(ranks);
  if (name === undefined) return;
  const plain = name.replace(/^@/, '');
  await session.request('groups', { define: { name: plain, ranks } });
  void vscode.window.showInformationMessage(vscode.l10n.t('@{0} now means {1}.', plain, whichRanks(ranks)));
}

/** Release the ranks of a row of the view; without a row, those that the user names. */
async function release(sessions: RankSessions, tree: RanksTree, args: readonly unknown[]): Promise<void> {
  const chosen = isNode(args[0]) ? selectedRanks(tree, args) : undefined;
  const session = chosen?.session ?? requireSession(sessions);
  const ranks = chosen?.ranks ?? (await pickRankSet(session, vscode.l10n.t('Release ranks: which ones?')));
  if (ranks !== undefined) await confirmRelease(session, ranks);
}

async function confirmRelease(session: RankSession, ranks: string): Promise<void> {
  const question = /^\d+$/.test(ranks)
    ? vscode.l10n.t('Release rank {0}? It runs on without a debugger.', ranks)
    : vscode.l10n.t('Release {0}? These ranks run on without a debugger.', ranks === 'all' ? vscode.l10n.t('all ranks') : whichRanks(ranks));
  const confirm = vscode.l10n.t('Release');
  const answer = await vscode.window.showWarningMessage(question, { modal: true }, confirm);
  if (answer === confirm) await session.request('release', { ranks });
}

export function registerControlCommands(sessions: RankSessions, tree: RanksTree): vscode.Disposable {
  const actions = ACTIONS.map((action) =>
    registerCommand(`${RANK_COMMAND_PREFIX}${action}`, async (...args) => {
      requireRow(args); // otherwise the selected ranks would move instead
      const { session, rows } = selectedRanks(tree, args);
      await control(session, rows, action);
    }),
  );
  return vscode.Disposable.from(
    ...actions,
    registerCommand(Command.newGroup, async (...args) => {
      const { session, ranks } = selectedRanks(tree, args);
      await defineGroup(session, ranks);
    }),
    registerCommand(Command.releaseRanks, (...args) => release(sessions, tree, args)),
    registerCommand(Command.releaseRow, (...args) => {
      requireRow(args);
      return release(sessions, tree, args);
    }),
  );
}
