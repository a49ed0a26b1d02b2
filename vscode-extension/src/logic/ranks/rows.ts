/** The state of a session's ranks (docs/protocol.md, `list`), kept up to date. Pure. */

import { Moves } from './moves';
import type { RankId } from './sets';

export const STATES = [
  'stopped',
  'pausing',
  'running',
  'connecting',
  'waiting',
  'lost',
  'exited',
] as const;
export type State = (typeof STATES)[number];
export type Counts = Readonly<Partial<Record<string, number>>>;

/** One entry of `list`; `worker` is the number of a process that the rank has started. */
export interface Row {
  readonly rank: number;
  readonly worker: number | null;
  readonly group: string;
  readonly coords: Readonly<Record<string, number>> | null;
  readonly host: string | null;
  readonly pid: number | null;
  readonly state: string;
  readonly reason: string | null;
  readonly thread: string | null;
  readonly function: string | null;
  readonly path: string | null;
  readonly line: number | null;
  readonly threadId: number;
  readonly exitCode: number | null;
}

/** The body of `list`. */
export interface Listing {
  readonly ranks: readonly Row[];
  readonly counts: Counts;
}

/** What changed of a rank's row. */
export type Change = Pick<Row, 'rank' | 'worker' | 'group'> & Partial<Row>;
/** The same change of one rank, or of several. */
export type Changes = Omit<Change, 'rank'> & { readonly rank: number | readonly number[] };

/** The body of the event `ranks`. */
export interface RanksEvent {
  readonly changed: readonly Changes[];
  readonly counts: Counts;
}

/** A name for the rank that no other one has. */
export function rankKey({ group, rank }: RankId): string {
  return `${group}/${rank}`;
}

export function keyOf(row: Change): string {
  return row.worker === null ? rankKey(row) : `${rankKey(row)}/${row.worker}`;
}

/** Of two ranks the one that comes first. */
export function byRank(one: RankId, other: RankId): number {
  if (one.group !== other.group) return one.group < other.group ? -1 : 1;
  return one.rank - other.rank;
}

function byPlace(one: Row, other: Row): number {
  return byRank(one, other) || (one.worker ?? -1) - (other.worker ?? -1);
}

/** All ranks of one session. */
export class Ranks {
  readonly moves = new Moves();
  private rows = new Map<string, Row>();

  replace(listing: Listing): void {
    const before = this.rows;
    this.rows = new Map(listing.ranks.map((row) => [keyOf(row), row]));
    for (const key of new Set([...before.keys(), ...this.rows.keys()])) {
      this.moves.replaced(before.get(key), this.rows.get(key));
    }
  }

  /**
   * Apply an event. False if the session's counts show that something was missed, because no event
   * names a rank that was dropped: then `list` has to be requested again.
   */
  apply(event: RanksEvent): boolean {
    for (const change of event.changed.flatMap(unfolded)) {
      const before = this.rows.get(keyOf(change));
      if (!before && !isWhole(change)) continue; // the list that is under way has it
      const row = { ...before, ...change } as Row;
      this.moves.replaced(before, row);
      if (row.worker !== null && row.state === 'exited') this.rows.delete(keyOf(row));
      else this.rows.set(keyOf(row), row);
    }
    const counts = this.counts();
    return STATES.every((state) => (counts[state] ?? 0) === (event.counts[state] ?? 0));
  }

  /** DAP's event: the thread of a rank, or all threads, run on. */
  continued(threadId: number, allThreads: boolean): void {
    this.moves.continued([...this.rows.values()].filter((row) => allThreads || row.threadId === threadId));
  }

  all(): readonly Row[] {
    return [...this.rows.values()].sort(byPlace);
  }

  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { state } of this.rows.values()) counts[state] = (counts[state] ?? 0) + 1;
    return counts;
  }

  /** The rank of a row of the call stack. */
  withThread(threadId: number): Row | undefined {
    return [...this.rows.values()].find((row) => row.threadId === threadId);
  }
}

function unfolded(changes: Changes): Change[] {
  const ranks = typeof changes.rank === 'number' ? [changes.rank] : changes.rank;
  return ranks.map((rank) => ({ ...changes, rank }));
}

/** Of a rank that is new the event has all. */
function isWhole(change: Change): change is Row {
  return change.threadId !== undefined;
}

export function severalGroups(rows: Iterable<Row>): boolean {
  let first: string | undefined;
  for (const { group } of rows) {
    first ??= group;
    if (group !== first) return true;
  }
  return false;
}
