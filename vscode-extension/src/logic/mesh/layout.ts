/** Where each rank lies in the picture of the mesh: one dimension along the columns, the others down the lines. Pure. */

import { severalGroups, type Row } from '../ranks/rows';
import { foldNumbers } from '../ranks/sets';

/** One line of the picture; `first`: above it another block begins, of an outer dimension or a group. */
export interface Line {
  readonly name: string;
  readonly first: boolean;
  readonly cells: readonly (Row | undefined)[];
}

export interface Layout {
  /** The dimensions that can lie along the columns; fewer than two where the session knows no mesh. */
  readonly dimensions: readonly string[];
  /** The one that does; empty where ranks lie in the order of their numbers. */
  readonly columns: string;
  readonly width: number;
  readonly lines: readonly Line[];
}

const NARROW = 8;
const WIDE = 32;
const MOST_NARROW = 64; // ranks

/** `wanted`: the dimension of the columns, where the mesh has it. Workers lie nowhere. */
export function layOut(all: readonly Row[], wanted: string): Layout {
  const rows = all.filter(({ worker }) => worker === null);
  const several = severalGroups(rows);
  const groups = [...new Set(rows.map(({ group }) => group))];
  const parts = groups.map((group) => {
    const prefix = several ? `${group} ` : '';
    return partOf(rows.filter((row) => row.group === group), wanted, prefix);
  });
  const width = Math.max(0, ...parts.flatMap(({ lines }) => lines.map(({ cells }) => cells.length)));
  const full = (line: Line): Line => ({ ...line, cells: Array.from({ length: width }, (_, index) => line.cells[index]) });
  const lines = parts.flatMap((part) => part.lines.map(full));
  const dimensions = [...new Set(parts.flatMap((part) => part.dimensions))];
  return { dimensions, columns: parts.find(({ columns }) => columns !== '')?.columns ?? '', width, lines };
}

function partOf(rows: readonly Row[], wanted: string, prefix: string): Omit<Layout, 'width'> {
  const dimensions = dimensionsOf(rows);
  if (dimensions.length < 2) return { dimensions, columns: '', lines: wrapped(rows, prefix) };
  const columns = dimensions.includes(wanted) ? wanted : (dimensions.at(-1) ?? '');
  const others = dimensions.filter((name) => name !== columns);
  return { dimensions, columns, lines: linesOf(rows, others, columns, prefix) };
}

/** In the order of their numbers, as many in each line as are easily counted. */
function wrapped(rows: readonly Row[], prefix: string): Line[] {
  const width = rows.length > MOST_NARROW ? WIDE : NARROW;
  return Array.from({ length: Math.ceil(rows.length / width) }, (_, index) => {
    const cells = rows.slice(index * width, (index + 1) * width);
    return { name: prefix + foldNumbers(cells.map(({ rank }) => rank)), first: index === 0, cells };
  });
}

function linesOf(rows: readonly Row[], others: readonly string[], columns: string, prefix: string): Line[] {
  const lines = new Map<string, { at: number[]; cells: (Row | undefined)[] }>();
  for (const row of rows) {
    const at = others.map((name) => coordinate(row, name));
    const line = lines.get(at.join()) ?? { at, cells: [] };
    line.cells[coordinate(row, columns)] = row;
    lines.set(at.join(), line);
  }
  const sorted = [...lines.values()].sort((one, other) => compared(one.at, other.at));
  return sorted.map(({ at, cells }, index) => {
    const name = prefix + others.map((each, place) => `${each}=${at[place] ?? 0}`).join(' ');
    const outer = at.slice(0, -1).join();
    return { name, first: index === 0 || sorted[index - 1]?.at.slice(0, -1).join() !== outer, cells };
  });
}

function compared(one: readonly number[], other: readonly number[]): number {
  const place = one.findIndex((number, index) => number !== other[index]);
  return place < 0 ? 0 : (one[place] ?? 0) - (other[place] ?? 0);
}

function coordinate(row: Row, name: string): number {
  return row.coords?.[name] ?? 0;
}

/**
 * As few dimensions as tell all ranks apart, at least two: torch's meshes have flattened ones beside
 * those that they are made of. None where ranks have no coordinates, or share them.
 */
function dimensionsOf(rows: readonly Row[]): readonly string[] {
  const names = [...new Set(rows.flatMap(({ coords }) => Object.keys(coords ?? {})))];
  const sizes = new Map(names.map((name) => [name, new Set(rows.map((row) => coordinate(row, name))).size]));
  const sizeOf = (name: string): number => sizes.get(name) ?? 0;
  let kept = names.filter((name) => sizeOf(name) > 1);
  if (!apart(rows, kept)) return [];
  for (const name of [...kept].sort((one, other) => sizeOf(other) - sizeOf(one))) {
    const rest = kept.filter((other) => other !== name);
    if (rest.length > 1 && apart(rows, rest)) kept = rest;
  }
  return kept;
}

function apart(rows: readonly Row[], names: readonly string[]): boolean {
  return new Set(rows.map((row) => names.map((name) => coordinate(row, name)).join())).size === rows.length;
}
