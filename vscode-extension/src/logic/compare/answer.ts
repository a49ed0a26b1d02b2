/** The answer of `compare` (docs/protocol.md), made ready to be shown. Pure. */

import { byRank } from '../ranks/rows';
import { countedRanks, unfold, type RankId } from '../ranks/sets';

export interface Histogram {
  readonly edges: readonly number[];
  readonly counts: readonly number[];
}

/** Of the finite numbers, but for the counts of the others. `histogram` is null where there are too few of them. */
export interface Statistics {
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  readonly std: number | null;
  readonly nan: number;
  readonly inf: number;
  readonly histogram: Histogram | null;
}

export interface CompareBody {
  readonly values: readonly { readonly ranks: string; readonly value: string; readonly outlier: boolean }[];
  readonly statistics: Statistics | null;
  readonly outliers: string;
  readonly errors: readonly { readonly ranks: string; readonly message: string }[];
  readonly missing: string;
}

/** What was asked, and the answer to it: all that the view needs to show it again later. */
export interface Comparison {
  readonly expression: string;
  readonly ranks: string;
  /** How far up the stack it was evaluated; null: where each rank stands. */
  readonly frame: number | null;
  readonly body: CompareBody;
}

export type Kind = 'value' | 'error' | 'missing';

/** One line of the table: ranks that say the same. */
export interface Group {
  readonly kind: Kind;
  readonly outlier: boolean;
  readonly ranks: string;
  readonly ids: readonly RankId[];
  readonly value: string;
  /** `outlier`, `NaN`, `infinite`: in words, for a colour alone says nothing to some. */
  readonly marks: readonly string[];
}

const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|nan|inf)$/i;

/** The number that a value is, as Python writes it; undefined for anything else. */
export function numberOf(text: string): number | undefined {
  if (text.length > 400 || !NUMBER.test(text)) return undefined;
  const plain = text.toLowerCase();
  if (plain.endsWith('nan')) return NaN;
  if (plain.endsWith('inf')) return plain.startsWith('-') ? -Infinity : Infinity;
  return Number(text);
}

function markOf(value: string): string[] {
  const number = numberOf(value);
  if (number === undefined) return insideTensor(value);
  if (Number.isNaN(number)) return ['NaN'];
  return Number.isFinite(number) ? [] : ['infinite'];
}

/** A tensor's summary tells how many of its elements are no numbers: `nan 3 · inf 0`. */
function insideTensor(value: string): string[] {
  const nan = /· nan ([1-9]\d*)/.exec(value);
  const inf = /· inf ([1-9]\d*)/.exec(value);
  return [...(nan ? [`${nan[1] ?? ''} NaN inside`] : []), ...(inf ? [`${inf[1] ?? ''} infinite inside`] : [])];
}

/** Outliers first: they are what one looks for. Then the other values, most ranks first, and who has none. */
export function groupsOf(body: CompareBody): Group[] {
  const values = body.values.map(({ ranks, value, outlier }): Group => {
    const marks = outlier ? ['outlier', ...markOf(value)] : markOf(value);
    return { kind: 'value', outlier, ranks, ids: unfold(ranks, ''), value, marks };
  });
  const without = (kind: Kind, ranks: string, value: string, mark: string): Group => {
    return { kind, outlier: false, ranks, ids: unfold(ranks, ''), value, marks: [mark] };
  };
  return [
    ...values.filter(({ outlier }) => outlier),
    ...values.filter(({ outlier }) => !outlier),
    ...body.errors.map(({ ranks, message }) => without('error', ranks, message, 'failed')),
    ...(body.missing ? [without('missing', body.missing, 'no response in time', 'no response')] : []),
  ];
}

/** A number that a rank has; `far`: it is an outlier. */
export interface Numbered {
  readonly id: RankId;
  readonly number: number;
  readonly far: boolean;
}

/** The numbers of all ranks that have one, in the ranks' order. */
export function numbersOf(groups: readonly Group[]): Numbered[] {
  const found = groups.flatMap(({ kind, ids, value, outlier }) => {
    const number = kind === 'value' ? numberOf(value) : undefined;
    return number === undefined ? [] : ids.map((id) => ({ id, number, far: outlier }));
  });
  return found.sort(({ id: one }, { id: other }) => byRank(one, other));
}

/** All ranks that were asked. */
export function idsOf(body: CompareBody): RankId[] {
  return groupsOf(body).flatMap(({ ids }) => ids);
}

/** A set of ranks before its value: `{0-1,3}`, and `⚠ {2}` for an outlier. */
export function nameOfSet({ ranks, outlier }: Group): string {
  return `${outlier ? '⚠ ' : ''}{${ranks}}`;
}

function count(groups: readonly Group[], kind: Kind): number {
  return groups.filter((group) => group.kind === kind).reduce((sum, { ids }) => sum + ids.length, 0);
}

/** `8 ranks · 2 different values · 1 outlier · 1 failed`. */
export function summaryOf(body: CompareBody): string {
  const groups = groupsOf(body);
  const different = body.values.length;
  const outliers = unfold(body.outliers, '').length;
  const failed = count(groups, 'error');
  const silent = count(groups, 'missing');
  const one = failed + silent ? '1 value' : 'all the same value';
  const values = different === 1 ? one : `${different} different values`;
  return [
    countedRanks(count(groups, 'value') + failed + silent),
    different === 0 ? 'no value' : values,
    ...(outliers ? [outliers === 1 ? '1 outlier' : `${outliers} outliers`] : []),
    ...(failed ? [`${failed} failed`] : []),
    ...(silent ? [`${silent} without an answer`] : []),
  ].join(' · ');
}

/** A number as people read it: at most six digits that count. */
export function short(number: number | null): string {
  if (number === null) return 'unknown';
  return Number.isInteger(number) && Math.abs(number) < 1e15
    ? `${number}`
    : `${Number(number.toPrecision(6))}`;
}
