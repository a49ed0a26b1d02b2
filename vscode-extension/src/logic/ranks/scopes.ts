/** What continue, pause and steps can be limited to: all ranks, those of one place, a named set, several of these. Pure. */

import { classesOf } from './classes';
import { type Hue, HUES, type Hues, isPlaced, MANY } from './hues';
import { placeOf } from './labels';
import { rankKey, severalGroups, type Row } from './rows';
import { countedRanks, setOfRows, unfold } from './sets';
import { SCOPES } from './status';
import type { NamedSet } from './suggestions';

export interface ScopeEntry {
  readonly key: string;
  readonly label: string;
  /** The value of the request `scope`: `all`, or a rank set. */
  readonly set: string;
  readonly ranks: readonly string[];
  readonly hue: Hue | undefined;
}

const OR = ' | ';

/** All ranks, then each class that stands at a line, by hue (which is its key's number), then the named sets. */
export function scopeEntries(rows: readonly Row[], named: readonly NamedSet[], hues: Hues): ScopeEntry[] {
  const mains = rows.filter(({ worker }) => worker === null);
  const several = severalGroups(mains);
  const classes = classesOf(mains).filter(isPlaced).map((found): ScopeEntry => {
    const label = `${placeOf(found)}${several ? ` @${found.group}` : ''}`;
    const ranks = found.rows.map(rankKey);
    return { key: found.key, label, set: setOfRows(found.rows, mains), ranks, hue: hues.of.get(found.key) };
  });
  const group = mains[0]?.group ?? '';
  const names = named.map(({ name, ranks }): ScopeEntry => {
    const key = `@${name}`;
    return { key, label: key, set: key, ranks: unfold(ranks, group).map(rankKey), hue: hues.of.get(key) };
  });
  const all = { key: 'all', label: 'All', set: 'all', ranks: mains.map(rankKey), hue: undefined };
  return [all, ...classes.sort((one, other) => orderOf(one.hue) - orderOf(other.hue)), ...names];
}

/** Those without a hue of their own come last; not infinity, of which two have no difference. */
function orderOf(hue: Hue | undefined): number {
  return hue === undefined || hue === MANY ? HUES.length + 1 : hue;
}

/** The choice of several entries; `all` and nothing else where that is one of them. */
export function unionOf(entries: readonly ScopeEntry[]): string {
  return entries.some(({ set }) => set === 'all') ? 'all' : entries.map(({ set }) => set).join(OR);
}

/** What is in force after an entry was chosen: choosing the one that is in force ends it. */
export function toggled(scope: string, entry: ScopeEntry): string {
  return scope === entry.set ? 'auto' : entry.set;
}

/** Whether the scope is this entry, or includes it. */
export function isChosen(scope: string, { set }: ScopeEntry): boolean {
  return scope === set || scope.split(OR).includes(set);
}

export interface ScopeText {
  readonly text: string;
  readonly detail: string;
  readonly hue: Hue | undefined;
}

/** `scope: auto`, or `F10 → @slow (3)` in the hue of that set. */
export function scopeText(scope: string, entries: readonly ScopeEntry[]): ScopeText {
  const word = SCOPES.find(({ value }) => value === scope);
  if (word) return { text: `scope: ${scope}`, detail: word.detail, hue: undefined };
  const chosen = entries.filter((entry) => isChosen(scope, entry));
  const known = chosen.map(({ set }) => set);
  const others = known.includes(scope) ? [] : scope.split(OR).filter((part) => !known.includes(part));
  const ranks = new Set(chosen.flatMap((entry) => entry.ranks));
  const count = others.length > 0 ? '' : ` (${ranks.size})`;
  const text = [...chosen.map(({ label }) => label), ...others].join(' + ');
  const detail = `Continue, pause and steps apply to ${others.length > 0 ? scope : `${countedRanks(ranks.size)}: ${scope}`}`;
  const hue = chosen.length === 1 && others.length === 0 ? chosen[0]?.hue : MANY;
  return { text: `F10 → ${text}${count}`, detail, hue };
}

/** The stopped class that comes `step` places after that of a thread; the first where it has none. */
export function neighbour(rows: readonly Row[], hues: Hues, threadId: number | undefined, step: 1 | -1): Row | undefined {
  const classes = classesOf(rows).filter(isPlaced);
  classes.sort((one, other) => orderOf(hues.of.get(one.key)) - orderOf(hues.of.get(other.key)));
  const now = classes.findIndex((one) => one.rows.some((row) => row.threadId === threadId));
  return now < 0 ? classes[0]?.rows[0] : classes.at((now + step) % classes.length)?.rows[0];
}

/** A rank of the stopped class of fewest ranks; one at an exception before all others. */
export function outlier(rows: readonly Row[]): Row | undefined {
  return classesOf(rows).find(isPlaced)?.rows[0];
}
