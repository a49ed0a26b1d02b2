/** Suggestions while a rank set or a command is typed. Pure. */

import { classesOf } from './classes';
import { STATES, type Row } from './rows';
import { countedRanks, setOfRows } from './sets';
import { classLabels } from './labels';

/** `complete`: choosing it closes the picker; otherwise it only extends the text. */
export interface Suggestion {
  readonly text: string;
  readonly label: string;
  readonly description: string;
  /** What is wrong with it, on a line of its own: beside the label it would be cut off. */
  readonly problem?: string;
  readonly complete: boolean;
}

/** A DAP `CompletionItem`; `start` counts from 0. */
export interface Target {
  readonly label: string;
  readonly text?: string;
  readonly start?: number;
  readonly length?: number;
  readonly detail?: string;
}

/** The adapter's result for the text so far. */
export interface Evaluation {
  readonly ranks: readonly Row[];
  readonly problem: string;
}

export interface NamedSet {
  readonly name: string;
  readonly ranks: string;
}

export const EMPTY = 'no ranks at the moment';

export function typedRanks(typed: string, { ranks, problem }: Evaluation): Suggestion[] {
  if (typed === '') return [];
  if (problem) return [{ text: typed, label: `$(error) ${typed}`, description: '', problem: firstLine(problem), complete: false }];
  const complete = ranks.length > 0;
  const description = complete ? counted(ranks) : EMPTY;
  return [{ text: typed, label: `${complete ? '$(check)' : '$(error)'} ${typed}`, description, complete }];
}

function counted(ranks: readonly Row[]): string {
  const mains = ranks.filter(({ worker }) => worker === null);
  return `${countedRanks(mains.length)}: ${setOfRows(mains, ranks)}`;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? text;
}

/** Ready-made sets: all ranks, by state, by place, and the named ones. */
export function readySets(rows: readonly Row[], named: readonly NamedSet[]): Suggestion[] {
  const mains = rows.filter(({ worker }) => worker === null);
  const states = STATES.map((state) => ({ state, members: mains.filter((row) => row.state === state) }))
    .filter(({ members }) => members.length > 0)
    .map(({ state, members }) => ({ text: state, description: countedRanks(members.length) }));
  const places = classesOf(mains)
    .filter(({ path }) => path !== null)
    .map((found) => ({ text: setOfRows(found.rows, mains), description: classLabels(found, false).spoken }));
  const names = named.map(({ name, ranks }) => ({ text: `@${name}`, description: ranks || EMPTY }));
  const all = { text: 'all', description: countedRanks(mains.length) };
  return [all, ...states, ...names, ...places].map((one) => ({ ...one, label: one.text, complete: true }));
}

/** The adapter's completions as whole texts; `head` was sent before what the user typed. */
export function completed(typed: string, head: string, targets: readonly Target[]): Suggestion[] {
  const sent = head + typed;
  return targets.flatMap(({ label, text, start, length, detail }) => {
    const from = start ?? sent.length;
    if (from < head.length) return [];
    const whole = sent.slice(head.length, from) + (text ?? label) + sent.slice(from + (length ?? 0));
    if (whole === typed) return [];
    return [{ text: whole, label: whole, description: detail ?? '', complete: false }];
  });
}

const PDB_COMMANDS: readonly (readonly [string, string, boolean])[] = [
  ['p ', 'show an expression', false],
  ['w', 'show where each rank is', true],
  ['n', 'step over', true],
  ['s', 'step into', true],
  ['r', 'step out', true],
  ['c', 'continue', true],
  ['a', 'show the function\'s arguments', true],
  ['!', 'run a statement', false],
];

export function commandsFor(typed: string): Suggestion[] {
  const own = typed.trim() === '' ? [] : [{ text: typed, label: `$(check) ${typed}`, description: '', complete: true }];
  const matching = PDB_COMMANDS.filter(
    ([command]) => typed === '' || (command !== typed && command.startsWith(typed)),
  );
  return [...own, ...matching.map(([text, description, complete]) => ({ text, label: text, description, complete }))];
}
