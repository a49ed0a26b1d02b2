/** The words that a breakpoint's condition may begin with: ranks, `barrier`, `differ`. Pure. */

import { readySets, type NamedSet } from '../ranks/suggestions';
import { setOfRows } from '../ranks/sets';
import type { Row } from '../ranks/rows';

export interface Word {
  /** What is shown, and what the text so far is compared with. */
  readonly label: string;
  readonly detail: string;
  /** As a snippet: the cursor goes where the rest is typed. */
  readonly snippet: string;
}

const MOST = 24; // ranks' sets of one dimension; more are typed

const WAITING: readonly (readonly [string, string, string])[] = [
  ['barrier', 'ranks wait for each other here, and stop once all are there', 'barrier'],
  ['barrier: ', 'the same, where the condition holds', 'barrier: $0'],
  ['differ: ', 'ranks stop here when the values of an expression differ', 'differ: ${1:loss}'],
];

function escapeSnippet(text: string): string {
  return text.replace(/[\\$}]/g, '\\$&');
}

/** `ranks(tp=0): ` for each place of each dimension, then `@name: ` and the sets of ranks at one place. */
export function conditionWords(rows: readonly Row[], named: readonly NamedSet[]): Word[] {
  const mains = rows.filter(({ worker }) => worker === null);
  const places = [...new Set(mains.flatMap(({ coords }) => Object.entries(coords ?? {}).map(([name, at]) => `${name}=${at}`)))].sort();
  const dimensions = places.slice(0, MOST).map((place): [string, string] => {
    const [name = '', at] = place.split('=');
    const members = mains.filter(({ coords }) => String(coords?.[name]) === at);
    return [`ranks(${place})`, setOfRows(members, rows)];
  });
  const ready = readySets(rows, named).filter(({ text }) => text.startsWith('@') || /^\d/.test(text));
  const sets = ready.map(({ text, description }): [string, string] => [text.startsWith('@') ? text : `ranks(${text})`, description]);
  const all = [...dimensions, ...sets].map(([set, about]): Word => ({ label: `${set}: `, detail: `only these ranks: ${about}`, snippet: `${escapeSnippet(set)}: $0` }));
  const typed: Word = { label: 'ranks()', detail: 'only some ranks: ranks(0:4), ranks(1,3), ranks(tp=0)', snippet: 'ranks(${1:0}): $0' };
  return [typed, ...all, ...WAITING.map(([label, detail, snippet]) => ({ label, detail, snippet }))];
}
