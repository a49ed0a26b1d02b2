/** The question and the answer of `array` (docs/protocol.md), and its cells. Pure. */

export interface Query {
  readonly expression: string;
  readonly ranks: string;
  readonly rows: number | '$rank' | null;
  readonly columns: number | null;
  readonly at: readonly number[];
}

export interface Statistics {
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  readonly nan: number;
  readonly inf: number;
  readonly count: number;
}

export interface Part {
  readonly ranks: string;
  readonly row: number;
  readonly column: number;
  readonly height: number;
  readonly width: number;
  readonly grid: readonly [number, number];
  readonly mean: string;
  readonly max: string;
  readonly nan: string;
  readonly statistics: Statistics;
  /** How many are below the first of `ends`, in bins between them, and above. */
  readonly histogram: readonly number[];
  readonly ends: readonly number[];
  readonly complete: boolean;
}

interface Reported {
  readonly ranks: string;
  readonly message: string;
}

export interface ArrayBody {
  readonly name: string;
  readonly dtype: string;
  readonly device: string;
  readonly placements: string;
  readonly shape: readonly number[];
  readonly rows: number | '$rank' | null;
  readonly columns: number;
  readonly extent: readonly [number, number];
  readonly parts: readonly Part[];
  readonly shapes: readonly Reported[];
  readonly errors: readonly Reported[];
  readonly missing: string;
}

export type Show = 'max' | 'mean' | 'nan';

export type FromPage =
  | { readonly type: 'ready'; readonly kept: Query | null }
  | { readonly type: 'ask'; readonly query: Query }
  | { readonly type: 'go'; readonly ranks: string };

export type ToPage =
  | { readonly type: 'show'; readonly query: Query; readonly body: ArrayBody }
  | { readonly type: 'problem'; readonly query: Query; readonly message: string };

/** Takes `w[$i, 3, $j]` apart; `$rank` stands for the ranks, `:` for all of a dimension. */
export function queryOf(text: string, ranks = ''): Query {
  const found = /^(.+)\[([^[\]]*\$(?:i|j|rank)\b[^[\]]*)\]$/s.exec(text.trim());
  const [expression = '', inside = ''] = found?.slice(1) ?? [text.trim()];
  const names = inside.split(',').map((name) => name.trim()).filter(Boolean);
  const axes = names.filter((name) => name !== '$rank');
  const [rows, columns] = [axisOf(axes, '$i'), axisOf(axes, '$j')];
  const query = { expression, ranks, at: axes.map(indexOf) };
  return axes.length < names.length ? { ...query, rows: '$rank', columns: columns ?? rows } : { ...query, rows, columns };
}

function axisOf(axes: readonly string[], name: string): number | null {
  return axes.includes(name) ? axes.indexOf(name) : null;
}

function indexOf(name: string): number {
  if (name === ':') return -1;
  return /^\d{1,15}$/.test(name) ? Number(name) : 0;
}

/** Which index of a dimension is shown, -1 for all of it. */
export function indexIn({ at, rows }: Query, axis: number): number {
  return at[axis] ?? (rows === '$rank' ? -1 : 0);
}

/** One cell: which elements it stands for, and what is known of them. */
export interface Cell {
  readonly ranks: string;
  readonly row: number;
  readonly column: number;
  readonly height: number;
  readonly width: number;
  readonly max: number;
  readonly mean: number;
  readonly nan: number;
}

function numbersOf(text: string): Float32Array {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** A part with its numbers. */
export class Block {
  readonly mean: Float32Array;
  readonly max: Float32Array;
  readonly nan: Float32Array;
  /** Elements of a cell; the last ones of a part may have fewer. */
  readonly tall: number;
  readonly wide: number;

  constructor(readonly part: Part) {
    this.mean = numbersOf(part.mean);
    this.max = part.max ? numbersOf(part.max) : this.mean;
    this.nan = part.nan ? numbersOf(part.nan) : new Float32Array(this.mean.length);
    this.tall = Math.ceil(part.height / part.grid[0]);
    this.wide = Math.ceil(part.width / part.grid[1]);
  }

  cell(index: number): Cell {
    const { part, tall, wide } = this;
    const [row, column] = [Math.floor(index / part.grid[1]) * tall, (index % part.grid[1]) * wide];
    return {
      ranks: part.ranks,
      row: part.row + row,
      column: part.column + column,
      height: Math.min(tall, part.height - row),
      width: Math.min(wide, part.width - column),
      max: this.max[index] ?? NaN,
      mean: this.mean[index] ?? NaN,
      nan: this.nan[index] ?? 0,
    };
  }

  /** The place of the cell that has this element, undefined for one of another part. */
  indexAt(row: number, column: number): number | undefined {
    const { part, tall, wide } = this;
    const [down, across] = [row - part.row, column - part.column];
    if (down < 0 || across < 0 || down >= part.height || across >= part.width) return undefined;
    return Math.floor(down / tall) * part.grid[1] + Math.floor(across / wide);
  }
}

export function cellAt(blocks: readonly Block[], row: number, column: number): Cell | undefined {
  for (const block of blocks) {
    const index = block.indexAt(row, column);
    if (index !== undefined) return block.cell(index);
  }
  return undefined;
}

const MOVES: Readonly<Record<string, readonly [number, number]>> = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
  PageUp: [-16, 0], PageDown: [16, 0], Home: [0, -Infinity], End: [0, Infinity],
}; // prettier-ignore

/** The cell that a key leads to. */
export function neighbour(blocks: readonly Block[], cell: Cell, key: string, [high, wide]: readonly [number, number]): Cell | undefined {
  const move = MOVES[key];
  if (!move) return undefined;
  const within = (at: number, end: number): number => Math.min(end - 1, Math.max(0, at));
  const [row, column] = [cell.row + move[0] * cell.height, cell.column + move[1] * cell.width];
  return cellAt(blocks, within(row, high), within(column, wide));
}

const LISTED = 10;

/** The cells that one looks for: those with most NaN, then the farthest from nought. */
export function oddest(blocks: readonly Block[]): Cell[] {
  const ordered = (far: (block: Block, index: number) => number): Cell[] => {
    const found = blocks.flatMap((block) => Array.from(block.mean, (_, index) => ({ block, index, far: far(block, index) || 0 })));
    found.sort((one, other) => other.far - one.far);
    return found.slice(0, LISTED).filter((one) => one.far > 0).map(({ block, index }) => block.cell(index));
  };
  const largest = (block: Block, index: number): number => (block.nan[index] ? 0 : Math.abs(block.max[index] ?? 0));
  return [...ordered((block, index) => block.nan[index] ?? 0), ...ordered(largest)];
}

/** From numbers to shares of the colours; numbers far from the others are `beyond`. */
export interface Scale {
  readonly low: number;
  readonly high: number;
  /** Nought has the colour in the middle. */
  readonly diverges: boolean;
}

export function scaleOf(numbers: Iterable<number>): Scale {
  const sorted = Float64Array.from(Array.from(numbers).filter(Number.isFinite)).sort();
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  const [first, second, third, last] = [at(0), at(0.02), at(0.98), at(1)];
  const far = third - second || Math.abs(third) * 1e-6;
  const [low, high] = [Math.max(first, second - far), Math.min(last, third + far)];
  return { low, high, diverges: low < 0 && high > 0 };
}

/** From 0 to 1, or `beyond` the scale's ends; undefined for what is not known. */
export function shareOf(number: number, { low, high, diverges }: Scale): number | 'beyond' | undefined {
  if (Number.isNaN(number)) return undefined;
  if (number < low || number > high) return 'beyond';
  if (diverges) return 0.5 + number / (2 * Math.max(-low, high));
  return high > low ? (number - low) / (high - low) : 0.5;
}
