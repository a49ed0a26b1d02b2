/** Casts and lists of ranks as text, to copy or to show. Pure. */

import { classOf } from './classes';
import { rankKey, severalGroups, type Row } from './rows';
import { callOf, countedRanks, unfold } from './sets';

/** The body of `cast`; an empty rank set is ''. */
export interface CastBody {
  readonly results: readonly { readonly ranks: string; readonly value: string; readonly type: string }[];
  readonly errors: readonly { readonly ranks: string; readonly message: string }[];
  readonly missing: string;
  readonly outliers: string;
  readonly inMain: string;
}

/** `cast ranks(0:4) p loss`, for the ranks of the same class as `row`, or for all without it. */
export function castText(command: string, row: Row | undefined, all: readonly Row[]): string {
  const mains = all.filter(({ worker }) => worker === null);
  const chosen = row ? classOf(row, mains) : mains.filter(({ state }) => state === 'stopped');
  const meant = chosen.length > 0 ? chosen : mains;
  return `cast ${callOf(meant, severalGroups(all))} ${command}`;
}

/** The results, equal ones merged. */
export function castReport(ranks: string, command: string, body: CastBody): string {
  const far = new Set(unfold(body.outliers, '').map(rankKey));
  const isFar = (text: string): boolean => unfold(text, '').every((id) => far.has(rankKey(id)));
  const entries: [string, string][] = [
    ...body.results.map(({ ranks: who, value }): [string, string] => [
      who,
      far.size > 0 && isFar(who) ? `${value}   (differs from the others)` : value,
    ]),
    ...body.errors.map(({ ranks: who, message }): [string, string] => [who, `failed: ${message}`]),
    ...(body.missing ? [[body.missing, 'no response in time'] as [string, string]] : []),
  ];
  const width = Math.min(24, Math.max(0, ...entries.map(([who]) => who.length)));
  const lines = entries.flatMap(([who, said]) => indented(who.padEnd(width), said));
  const note = body.inMain
    ? [`  (${wereRunning(body.inMain)} running: answered from the main module, or where its main thread is)`]
    : [];
  return [`cast ${ranks} ${command}`, ...lines, ...note].join('\n');
}

function wereRunning(ranks: string): string {
  return unfold(ranks, '').length === 1 ? `rank ${ranks} was` : `ranks ${ranks} were`;
}

function indented(head: string, said: string): string[] {
  const gap = ' '.repeat(head.length + 4);
  return said.split('\n').map((line, index) => (index === 0 ? `  ${head}  ${line}` : gap + line));
}

/** The failures, for a message; '' if there are none. */
export function problemsOf(body: CastBody): string {
  const failed = body.errors.map(({ ranks, message }) => `${ranks}: ${message}`);
  return [...failed, ...(body.missing ? [`${body.missing}: no response in time`] : [])].join('; ');
}

/** Rows as aligned columns. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, cell.length)));
  }
  return rows
    .map((row) => row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('  ').trimEnd())
    .join('\n');
}

export function listReport(rows: readonly Row[]): string {
  const several = severalGroups(rows);
  const head = ['rank', 'state', 'reason', 'host', 'process', 'place']; // paths are long: they end the line
  const body = rows.map((row) => [
    `${several ? `${row.group}:` : ''}${row.rank}${row.worker === null ? '' : `/${row.worker}`}`,
    row.state,
    row.reason ?? '',
    row.host ?? '',
    row.pid?.toString() ?? '',
    placeOf(row),
  ]);
  return [countedRanks(rows.length), table([head, ...body])].join('\n');
}

function placeOf({ path, line, function: name }: Row): string {
  return path === null ? '' : `${path}:${line ?? '?'} ${name ?? ''}`;
}
