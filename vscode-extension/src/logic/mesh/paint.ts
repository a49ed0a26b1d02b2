/** The colour of each rank in the picture of the mesh, which a letter, sign or number tells, too. Pure. */

import { groupsOf, numberOf, short, summaryOf, type CompareBody, type Group } from '../compare/answer';
import { classesOf, classKey, conditionOf } from '../ranks/classes';
import { type Hues, isPlaced, MANY } from '../ranks/hues';
import { placeOf } from '../ranks/labels';
import { rankKey, type Row } from '../ranks/rows';
import { countedRanks } from '../ranks/sets';
import { sixDigits } from '../watch/row';

/** `tint`: a class of the page's style. */
export interface Look {
  readonly tint: string;
  readonly mark: string;
  readonly spoken: string;
}

export interface Painting {
  readonly lookOf: (row: Row) => Look;
  readonly legend: readonly Look[];
}

const SIGNS: Readonly<Record<string, string>> = {
  dead: '✕',
  exception: '!',
  stopped: '■',
  pausing: '□',
  running: '▶',
  connecting: '…',
  waiting: '◇',
  lost: '?',
  exited: '–',
};
const LEVELS = 6;
const NOTHING: Look = { tint: 'plain', mark: '', spoken: '' };

export function byState(rows: readonly Row[]): Painting {
  const lookOf = (row: Row): Look => {
    const state = conditionOf(row);
    return { tint: state in SIGNS ? state : 'plain', mark: SIGNS[state] ?? '', spoken: state === 'dead' ? 'died' : state };
  };
  return { lookOf, legend: counted(rows, lookOf) };
}

/** Classes at a line have their hue and a letter, all others the look of their state. */
export function byClass(rows: readonly Row[], hues: Hues): Painting {
  const placed = classesOf(rows).filter(isPlaced);
  const looks = new Map(
    placed.map((found, index): [string, Look] => {
      const mark = index < 26 ? String.fromCharCode(65 + index) : '+';
      return [found.key, { tint: `hue${hues.of.get(found.key) ?? MANY}`, mark, spoken: placeOf(found) }];
    }),
  );
  const rest = byState(rows);
  const lookOf = (row: Row): Look => looks.get(classKey(row)) ?? rest.lookOf(row);
  return { lookOf, legend: counted(rows, lookOf) };
}

/** Numbers from pale to strong, without the outliers, which have a colour of their own; other values by hue. */
export function byValue(body: CompareBody | undefined): Painting {
  const groups = body ? groupsOf(body) : [];
  const inDigits = sixDigits(groups.map(({ value }) => value));
  const usual = groups.filter(({ kind, outlier }) => kind === 'value' && !outlier);
  const { tintOf, ends } = levelsOf(usual.map(({ value }) => value));
  const looks = new Map<string, Look>();
  const lookOfGroup = ({ kind, outlier, value }: Group): Look => {
    const mark = inDigits(value);
    if (kind !== 'value') return { tint: 'failed', mark: '?', spoken: value };
    return outlier ? { tint: 'far', mark, spoken: `outlier, ${mark}` } : { tint: tintOf(value), mark, spoken: mark };
  };
  for (const group of groups) for (const id of group.ids) looks.set(rankKey(id), lookOfGroup(group));
  const lookOf = (row: Row): Look => looks.get(rankKey(row)) ?? looks.get(rankKey({ ...row, group: '' })) ?? NOTHING;
  const legend = [...ends, ...(body ? [{ ...NOTHING, spoken: summaryOf(body) }] : [])];
  return { lookOf, legend };
}

/** From a value to its tint; the ends of the scale as a legend. */
function levelsOf(values: readonly string[]): { tintOf: (value: string) => string; ends: Look[] } {
  const numbers = values.map((value) => numberOf(value) ?? NaN);
  if (numbers.length === 0 || !numbers.every(Number.isFinite)) return { tintOf: (value) => hueOf(values, value), ends: [] };
  const low = numbers.reduce((one, other) => Math.min(one, other));
  const high = numbers.reduce((one, other) => Math.max(one, other));
  const tintOf = (value: string): string => {
    const share = high > low ? (Number(value) - low) / (high - low) : 0;
    return `level${Math.min(LEVELS - 1, Math.floor(share * LEVELS))}`;
  };
  const ends = [...new Set([low, high])].map((end): Look => ({ tint: tintOf(`${end}`), mark: '', spoken: short(end) }));
  return { tintOf, ends };
}

function hueOf(values: readonly string[], value: string): string {
  const index = values.indexOf(value);
  return `hue${index < LEVELS ? index + 1 : MANY}`;
}

/** What the tints mean, the most frequent last. */
function counted(rows: readonly Row[], lookOf: (row: Row) => Look): Look[] {
  const found = new Map<string, { look: Look; count: number }>();
  for (const row of rows.filter(({ worker }) => worker === null)) {
    const look = lookOf(row);
    const entry = found.get(JSON.stringify(look));
    found.set(JSON.stringify(look), { look, count: (entry?.count ?? 0) + 1 });
  }
  const entries = [...found.values()].sort((one, other) => one.count - other.count);
  return entries.map(({ look, count }) => ({ ...look, spoken: `${look.spoken} · ${countedRanks(count)}` }));
}
