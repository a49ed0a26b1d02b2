/** The hue of each class of stopped ranks and of each named set, the same in every view. Pure. */

import { classKey, type RankClass } from './classes';
import { keyOf, type Row } from './rows';

/** 1 to 6: the colours `dapMux.group1` and so on of package.json; 0: `dapMux.groupMany`. */
export type Hue = number;
export const MANY: Hue = 0;
export const HUES: readonly Hue[] = [1, 2, 3, 4, 5, 6];

/** Which hue is taken first. An exception is red, as long as nothing else is. */
const FOR_EXCEPTIONS: readonly Hue[] = [6, 5, 4, 3, 2, 1];
const FOR_NAMES: readonly Hue[] = [4, 3, 5, 2, 6, 1]; // yellow is hard to tell from orange

export interface Hues {
  /** By the class's key, or by a set's `@name`. */
  readonly of: ReadonlyMap<string, Hue>;
  /** The last hue of each rank, which its next class has if that is free: an outlier keeps its own as it steps. */
  readonly last: ReadonlyMap<string, Hue>;
}

export const NO_HUES: Hues = { of: new Map(), last: new Map() };

export function colorOf(hue: Hue): string {
  return hue === MANY ? 'dapMux.groupMany' : `dapMux.group${hue}`;
}

/** Those that live on keep their hue; of the new ones the largest chooses first. Above six, the rest are `MANY`. */
export function nextHues(before: Hues, classes: readonly RankClass[], names: readonly string[]): Hues {
  const placed = classes.filter(isPlaced);
  const living = new Set([...names.map(nameKey), ...placed.map(({ key }) => key)]);
  const of = new Map([...before.of].filter(([key, hue]) => living.has(key) && hue !== MANY));
  const last = new Map(before.last);
  for (const { key, exception, rows } of [...placed].sort((one, other) => other.rows.length - one.rows.length)) {
    const [first] = rows;
    const own = first && before.last.get(keyOf(first));
    take(of, key, [...(own ? [own] : []), ...(exception ? FOR_EXCEPTIONS : HUES)]);
    for (const row of rows) last.set(keyOf(row), of.get(key) ?? MANY);
  }
  for (const name of names) take(of, nameKey(name), FOR_NAMES);
  return { of, last };
}

/** Whether the ranks of a class stand at a line, and so have a hue. */
export function isPlaced({ state, path, line }: RankClass | Row): boolean {
  return state === 'stopped' && path !== null && line !== null;
}

function nameKey(name: string): string {
  return `@${name}`;
}

function take(of: Map<string, Hue>, key: string, wanted: readonly Hue[]): void {
  if (of.has(key)) return;
  const taken = new Set(of.values());
  of.set(key, wanted.find((hue) => !taken.has(hue)) ?? MANY);
}

/** The hue of a rank's class; undefined where it stands at no line. */
export function hueOfRow(hues: Hues, row: Row): Hue | undefined {
  return hues.of.get(classKey(row));
}

/** The one hue of several; `MANY` where they are of several classes, undefined where none has any. */
export function commonHue(hues: Hues, rows: readonly Row[]): Hue | undefined {
  const found = new Set(rows.map((row) => hueOfRow(hues, row)).filter((hue) => hue !== undefined));
  return found.size > 1 ? MANY : found.values().next().value;
}

/** The lines where ranks stand, with the hue of their largest class there. */
export interface GroupMark {
  readonly path: string;
  readonly line: number;
  readonly hue: Hue;
}

export function groupMarks(hues: Hues, classes: readonly RankClass[]): GroupMark[] {
  const marks = new Map<string, GroupMark>();
  for (const { key, path, line } of [...classes].sort((one, other) => other.rows.length - one.rows.length)) {
    const hue = hues.of.get(key);
    if (hue === undefined || path === null || line === null) continue;
    const place = `${line} ${path}`;
    if (!marks.has(place)) marks.set(place, { path, line, hue });
  }
  return [...marks.values()];
}
