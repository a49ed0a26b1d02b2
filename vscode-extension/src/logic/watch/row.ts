/** One expression of the Parallel Watch, made ready to be shown. Pure. */

import { groupsOf, numberOf, numbersOf, short, type CompareBody, type Group } from '../compare/answer';
import { foldNumbers, unfold, type RankId } from '../ranks/sets';

/** An expression at one of the last stops: the session keeps them (docs/protocol.md, `compare`). */
export interface Past {
  readonly value: string;
  readonly outliers: string;
}

export type WatchBody = CompareBody & { readonly history?: readonly Past[] };

/** What the page shows of one expression; null: it has not been evaluated. */
export interface Watched {
  readonly expression: string;
  readonly body: WatchBody | null;
  readonly problem: string;
  readonly changed: boolean;
}

/** A value with the ranks that have it. */
export interface Having {
  readonly set: string;
  readonly value: string;
  readonly ids: readonly RankId[];
  readonly outlier: boolean;
  readonly kind: Group['kind'];
}

const MAX_OUTLIERS = 8;
const MAX_SET = 24;
/** So few different values are told one by one. */
const MAX_APART = 3;

function sameRank(one: RankId, other: RankId): boolean {
  return one.rank === other.rank && (one.group === '' || other.group === '' || one.group === other.group);
}

export function focusValue(body: WatchBody, focus: RankId | undefined): string | undefined {
  if (!focus) return undefined;
  return groupsOf(body).find(({ kind, ids }) => kind === 'value' && ids.some((id) => sameRank(id, focus)))?.value;
}

/** `0-3,7`, evenly spaced ones as `0::64`, and many without an order as `37 ranks`. `all`: how many were asked. */
export function inShort(ids: readonly RankId[], all: number): string {
  const [group = '', ...others] = new Set(ids.map((id) => id.group));
  if (others.length > 0) return `${ids.length} ranks`;
  const numbers = [...new Set(ids.map(({ rank }) => rank))].sort((one, other) => one - other);
  const text = spaced(numbers, all) ?? foldNumbers(numbers);
  return (group && `${group}:`) + (text.length <= MAX_SET ? text : `${numbers.length} ranks`);
}

/** `0::64`; undefined where they are not evenly spaced. */
function spaced(numbers: readonly number[], all: number): string | undefined {
  const [first = 0, second = first] = numbers;
  const [step, last] = [second - first, numbers.at(-1) ?? first];
  const even = numbers.length > 2 && step > 1 && numbers.every((number, index) => number === first + index * step);
  return even ? `${first}:${last + step >= all ? '' : last + 1}:${step}` : undefined;
}

/** Shortens numbers, unless two of these would look alike then. */
export function sixDigits(values: readonly string[]): (value: string) => string {
  const shortened = (value: string): string => {
    const number = numberOf(value);
    return number !== undefined && Number.isFinite(number) && value.length > 8 ? short(number) : value;
  };
  const alike = new Set(values.map(shortened)).size < new Set(values).size;
  return alike ? (value): string => value : shortened;
}

/** Outliers one by one, and everybody else as one. */
export function valuesOf(body: WatchBody): Having[] {
  const groups = groupsOf(body);
  const all = groups.reduce((sum, { ids }) => sum + ids.length, 0);
  const outliers = groups.filter(({ outlier }) => outlier);
  const others = groups.filter(({ kind, outlier }) => kind === 'value' && !outlier);
  const without = groups.filter(({ kind }) => kind !== 'value');
  const inDigits = sixDigits(groups.map(({ value }) => value));
  const having = ({ ids, value, outlier, kind }: Group): Having => {
    return { set: inShort(ids, all), value: inDigits(value), ids, outlier, kind };
  };
  const shown = outliers.slice(0, MAX_OUTLIERS).map(having);
  const hidden = outliers.slice(MAX_OUTLIERS);
  const more = hidden.length > 0 ? [together(hidden, `${hidden.length} more outliers`)] : [];
  const rest = others.length <= MAX_APART ? others.map(having) : [together(others, '')];
  return [...shown, ...more.map((one) => ({ ...one, outlier: true })), ...rest, ...without.map(having)].map(
    (one, _, every) => named(one, every),
  );
}

function together(groups: readonly Group[], name: string): Having {
  const ids = groups.flatMap((group) => group.ids);
  return { set: name, value: rangeOf(groups), ids, outlier: false, kind: 'value' };
}

function rangeOf(groups: readonly Group[]): string {
  const numbers = groups.map(({ value }) => numberOf(value)).filter((one) => one !== undefined && Number.isFinite(one));
  if (numbers.length < groups.length) return `${groups.length} different values`;
  const finite = numbers as number[];
  const low = finite.reduce((one, other) => Math.min(one, other));
  const high = finite.reduce((one, other) => Math.max(one, other));
  return low === high ? short(low) : `${short(low)} … ${short(high)}`;
}

/** The ranks that are no outliers, where they are one row. */
function named(one: Having, every: readonly Having[]): Having {
  const plain = every.filter(({ outlier, kind }) => kind === 'value' && !outlier);
  if (one.outlier || one.kind !== 'value' || plain.length > 1) return one;
  const alone = every.length === 1;
  return { ...one, set: `all${alone ? '' : ' others'} (${one.ids.length})` };
}

/** Whether an answer tells something else than the one before. */
export function hasChanged(before: CompareBody | null, now: CompareBody): boolean {
  if (!before) return false;
  return JSON.stringify([before.values, before.errors]) !== JSON.stringify([now.values, now.errors]);
}

export interface Point {
  readonly number: number;
  readonly name: string;
  readonly far: boolean;
}

/** The numbers of all ranks in their order. */
export function pointsOf(body: WatchBody): Point[] {
  return numbersOf(groupsOf(body)).map(({ id, number, far }) => ({ number, far, name: `${id.group && `${id.group}:`}${id.rank}` }));
}

/** The numbers at the last stops, `far` where there was an outlier. */
export function historyOf({ history = [] }: WatchBody): Point[] {
  return history.flatMap(({ value, outliers }, index) => {
    const number = numberOf(value);
    const ago = history.length - 1 - index;
    const name = ago === 0 ? 'now' : `${ago} ${ago === 1 ? 'stop' : 'stops'} ago`;
    return number === undefined ? [] : [{ number, far: unfold(outliers, '').length > 0, name }];
  });
}
