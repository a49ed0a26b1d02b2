/** Commands of the Parallel Stacks view's rows. */

import * as vscode from 'vscode';
import { Command } from '../constants';
import { eventAfter } from '../events';
import { setOf, unfold, type RankId } from '../logic/ranks/sets';
import { rankKey, severalGroups, type Row } from '../logic/ranks/rows';
import { endOf, frameOf } from '../logic/stacks/tree';
import { isFile } from '../logic/ranks/labels';
import type { RankSession } from '../ranks/rankSession';
import { isStackNode, type StackNode } from '../views/stacksTree';
import { defineGroup, focus } from './control';
import { copy, registerCommand, requireRow, tell, UserError } from './registerCommand';

/** After this long a stop that the focus moves to is not waited for any more. */
const FOCUS_TIMEOUT_MS = 2000;

/** Where a row leads to. `isTop`: VS Code shows the place by itself once one of the ranks has the focus. */
export interface Target {
  readonly ranks: string;
  readonly place: { readonly path: string; readonly line: number } | undefined;
  readonly isTop: boolean;
}

/** Move the focus to the first of these ranks that is stopped now; without one, open the line. */
export async function goTo(session: RankSession, { ranks, place, isTop }: Target): Promise<void> {
  const wanted = new Set(idsOf(session, ranks).map(rankKey));
  const stopped = session.ranks
    .all()
    .filter((row) => row.worker === null && row.state === 'stopped' && wanted.has(rankKey(row)));
  const [first] = stopped;
  if (first && isTop) await focus(session, first);
  else {
    // an event for the rank in focus would hide the line that is opened
    if (first && !stopped.some((row) => hasFocus(session, row))) {
      const arrived = (): boolean => hasFocus(session, first); // VS Code shows the top frame of this rank
      await eventAfter(() => focus(session, first), vscode.debug.onDidChangeActiveStackItem, arrived, FOCUS_TIMEOUT_MS);
    }
    if (place) await openLine(place);
  }
}

function hasFocus(session: RankSession, { threadId }: Row): boolean {
  const item = vscode.debug.activeStackItem;
  return item instanceof vscode.DebugStackFrame && item.session.id === session.debugSession.id && item.threadId === threadId;
}

async function openLine({ path, line }: { readonly path: string; readonly line: number }): Promise<void> {
  if (!isFile(path)) throw new UserError(vscode.l10n.t('{0} is not a file.', path));
  const start = new vscode.Position(Math.max(0, line - 1), 0);
  const options = { selection: new vscode.Range(start, start), preserveFocus: true, preview: true };
  await vscode.window.showTextDocument(vscode.Uri.file(path), options);
}

function idsOf(session: RankSession, ranks: string): RankId[] {
  return unfold(ranks, session.ranks.all()[0]?.group ?? '');
}

/** The rank set as a user would type it. */
function typed(session: RankSession, ranks: string): string {
  return setOf(idsOf(session, ranks), severalGroups(session.ranks.all()));
}

function requireNode(args: readonly unknown[]): StackNode {
  requireRow(args);
  const [node] = args;
  if (!isStackNode(node)) throw new UserError(vscode.l10n.t('Choose this in the menu of a row of Parallel Stacks.'));
  return node;
}

async function open({ session, stack }: StackNode): Promise<void> {
  const end = endOf(stack);
  const ranks = end?.ranks ?? stack.ranks; // those that stand deeper are not at this row's line
  await goTo(session, { ranks, place: frameOf(stack), isTop: end !== undefined || stack.kind === 'branch' });
}

function addBreakpoint({ stack }: StackNode): void {
  const frame = frameOf(stack);
  if (!frame || !isFile(frame.path)) throw new UserError(vscode.l10n.t('There is no line of a file here.'));
  const at = new vscode.Location(vscode.Uri.file(frame.path), new vscode.Position(Math.max(0, frame.line - 1), 0));
  const isThere = vscode.debug.breakpoints.some(
    (one) =>
      one instanceof vscode.SourceBreakpoint &&
      one.location.uri.toString() === at.uri.toString() &&
      one.location.range.start.line === at.range.start.line,
  );
  if (!isThere) vscode.debug.addBreakpoints([new vscode.SourceBreakpoint(at)]);
  tell(vscode.l10n.t('Breakpoint at line {0}', frame.line));
}

export function registerStacksCommands(): vscode.Disposable {
  return vscode.Disposable.from(
    registerCommand(Command.openStack, (...args) => open(requireNode(args))),
    registerCommand(Command.groupOfStack, (...args) => {
      const { session, stack } = requireNode(args);
      return defineGroup(session, typed(session, stack.ranks));
    }),
    registerCommand(Command.breakpointAtStack, (...args) => {
      addBreakpoint(requireNode(args));
    }),
    registerCommand(Command.copyStackRanks, (...args) => {
      const { session, stack } = requireNode(args);
      return copy(typed(session, stack.ranks));
    }),
  );
}
