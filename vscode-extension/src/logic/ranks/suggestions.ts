/** What is offered while a rank set or a command is typed. Pure. */

import { classesOf } from './classes';
import { STATES, type Row } from './rows';
import { ranksWord, setOfRows } from './sets';
import { classWords } from './words';

/** `take`: choosing it ends the question; else it only goes on with the text. */
export interface Suggestion {
  readonly text: string;
  readonly label: string;
  readonly description: string;
  readonly take: boolean;
}

/** A DAP `CompletionItem`; `start` counts from 0. */
export interface Target {
  readonly label: string;
  readonly text?: string;
  readonly start?: number;
  readonly length?: number;
  readonly detail?: string;
}

/** What the adapter says of the text so far. */
export interface Verdict {
  readonly ranks: readonly Row[];
  readonly problem: string;
}

export interface NamedSet {
  readonly name: string;
  readonly ranks: string;
}

export const NOTHING = 'no rank belongs to it now';

export function typedRanks(typed: string, { ranks, problem }: Verdict): Suggestion[] {
  if (typed === '') return [];
  const said = problem ? firstLine(problem) : ranks.length === 0 ? NOTHING : counted(ranks);
  const take = problem === '' && ranks.length > 0;
  return [{ text: typed, label: `${take ? '$(check)' : '$(error)'} ${typed}`, description: said, take }];
}

function counted(ranks: readonly Row[]): string {
  const mains = ranks.filter(({ worker }) => worker === null);
  return `${ranksWord(mains.length)}: ${setOfRows(mains, ranks)}`;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? text;
}

/** Ready-made sets: everybody, who stands where, and the named ones. */
export function readySets(rows: readonly Row[], named: readonly NamedSet[]): Suggestion[] {
  const mains = rows.filter(({ worker }) => worker === null);
  const states = STATES.map((state) => ({ state, members: mains.filter((row) => row.state === state) }))
    .filter(({ members }) => members.length > 0)
    .map(({ state, members }) => ({ text: state, description: ranksWord(members.length) }));
  const places = classesOf(mains)
    .filter(({ path }) => path !== null)
    .map((found) => ({ text: setOfRows(found.rows, mains), description: classWords(found, false).spoken }));
  const names = named.map(({ name, ranks }) => ({ text: `@${name}`, description: ranks || NOTHING }));
  const all = { text: 'all', description: ranksWord(mains.length) };
  return [all, ...states, ...names, ...places].map((one) => ({ ...one, label: one.text, take: true }));
}

/** The adapter's completions, as whole texts; `head` is what was sent before what the user typed. */
export function completed(typed: string, head: string, targets: readonly Target[]): Suggestion[] {
  const sent = head + typed;
  return targets.flatMap(({ label, text, start, length, detail }) => {
    const from = start ?? sent.length;
    if (from < head.length) return [];
    const whole = sent.slice(head.length, from) + (text ?? label) + sent.slice(from + (length ?? 0));
    if (whole === typed) return [];
    return [{ text: whole, label: whole, description: detail ?? '', take: false }];
  });
}

const WORDS: readonly (readonly [string, string, boolean])[] = [
  ['p ', 'show an expression', false],
  ['w', 'where each rank stands', true],
  ['n', 'step over', true],
  ['s', 'step into', true],
  ['r', 'step out', true],
  ['c', 'continue', true],
  ['a', 'the arguments of the function', true],
  ['!', 'run a statement', false],
];

export function commandsFor(typed: string): Suggestion[] {
  const own = typed.trim() === '' ? [] : [{ text: typed, label: `$(check) ${typed}`, description: '', take: true }];
  const words = WORDS.filter(([word]) => typed === '' || (word !== typed && word.startsWith(typed)));
  return [...own, ...words.map(([text, description, take]) => ({ text, label: text, description, take }))];
}
