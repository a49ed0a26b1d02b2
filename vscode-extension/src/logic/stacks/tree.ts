/** The rows of the Parallel Stacks view, made of the body of `stacks` (docs/protocol.md). Pure. */

export interface Frame {
  readonly path: string;
  readonly line: number;
  readonly name: string;
  readonly library: boolean;
}

/** Frames that the same ranks share, the outermost first; an empty rank set is ''. */
export interface Branch {
  readonly ranks: string;
  readonly frames: readonly Frame[];
  readonly ends: string;
  readonly stopped: string;
  readonly branches: readonly Branch[];
}

export interface StacksBody {
  readonly threads: readonly { readonly name: string; readonly ranks: string; readonly branches: readonly Branch[] }[];
  readonly missing: readonly { readonly ranks: string; readonly message: string }[];
}

/** The ranks whose innermost frame is a row's, and those of them that were stopped there. */
export interface End {
  readonly ranks: string;
  readonly stopped: string;
}

interface Common {
  /** The same in the next answer where the row is the same, so a tree remembers what is expanded. */
  readonly key: string;
  /** As the session spells rank sets: with several groups `trainer:0-3; eval:0`. */
  readonly ranks: string;
  readonly children: readonly StackRow[];
}

export type StackRow = Common &
  (
    | { readonly kind: 'thread'; readonly name: string }
    | { readonly kind: 'branch'; readonly crowded: boolean }
    | { readonly kind: 'frame' | 'library'; readonly frame: Frame; readonly frames: number; readonly end?: End }
    | { readonly kind: 'missing'; readonly message: string }
  );

const MAIN = 'MainThread';
/** More branches than this at one place are collapsed at first. */
const MAX_EXPANDED = 8;

/** What ranks cannot tell comes last. The main thread has no row of its own where it is alone. */
export function rowsOf(body: StacksBody): StackRow[] {
  const threads = body.threads.map(({ name, ranks, branches }): StackRow => {
    const key = JSON.stringify(name);
    return { kind: 'thread', key, ranks, name, children: branchRows(key, branches) };
  });
  const [first] = threads;
  const alone = threads.length === 1 && first?.kind === 'thread' && first.name === MAIN;
  const missing = body.missing.map(({ ranks, message }): StackRow => {
    return { kind: 'missing', key: `missing ${message}`, ranks, message, children: [] };
  });
  return [...(alone ? first.children : threads), ...missing];
}

function branchRows(key: string, branches: readonly Branch[]): StackRow[] {
  const crowded = branches.length > MAX_EXPANDED;
  return branches.map((branch) => {
    const own = `${key} ${keyOf(branch.frames[0])}`; // no two branches of one place begin with the same frame
    const children = [...frameRows(own, branch), ...branchRows(own, branch.branches)];
    return { kind: 'branch', key: own, ranks: branch.ranks, crowded, children };
  });
}

function keyOf(frame: Frame | undefined): string {
  return frame ? JSON.stringify([frame.path, frame.line, frame.name]) : '';
}

/** Frames of libraries that call each other are one row, which has the innermost one's name. */
function frameRows(key: string, { ranks, frames, ends, stopped }: Branch): StackRow[] {
  const rows: StackRow[] = [];
  let depth = 0;
  for (const together of folded(frames)) {
    const own = `${key} ${depth}`;
    depth += together.length;
    const end = depth === frames.length && ends !== '' ? { end: { ranks: ends, stopped } } : {};
    const inner = together.length > 1 ? together.slice(0, -1) : [];
    const children = inner.map((frame, index) => frameRow(`${own}+${index}`, ranks, frame));
    const frame = together.at(-1);
    if (frame) rows.push({ ...frameRow(own, ranks, frame, together.length), children, ...end });
  }
  return rows;
}

function frameRow(key: string, ranks: string, frame: Frame, frames = 1): StackRow {
  return { kind: frames > 1 ? 'library' : 'frame', key, ranks, frame, frames, children: [] };
}

function folded(frames: readonly Frame[]): Frame[][] {
  const found: Frame[][] = [];
  for (const frame of frames) {
    const last = found.at(-1);
    if (frame.library && last?.[0]?.library) last.push(frame);
    else found.push([frame]);
  }
  return found;
}

/** The frame that a row leads to: of a branch, the innermost one that its ranks share. */
export function frameOf(row: StackRow): Frame | undefined {
  if (row.kind === 'frame' || row.kind === 'library') return row.frame;
  if (row.kind !== 'branch') return undefined;
  const shared = row.children.filter(({ kind }) => kind !== 'branch');
  const last = shared.at(-1);
  return last && frameOf(last);
}

/** The ranks that have a row's frame as their innermost one. */
export function endOf(row: StackRow): End | undefined {
  return row.kind === 'frame' || row.kind === 'library' ? row.end : undefined;
}
