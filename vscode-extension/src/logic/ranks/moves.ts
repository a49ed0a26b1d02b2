/** How often ranks have moved, which tells whether a value that was read is still of now. Pure. */

import type { Row } from './rows';
import type { RankId } from './sets';

/** What `Moves` had counted when it was taken, by rank. */
export type Moment = ReadonlyMap<string, number>;

/** Counts for each rank how often it has run on, stopped, ended or been dropped; workers do not count. */
export class Moves {
  private readonly counts = new Map<string, { readonly id: RankId; times: number }>();

  /** A row was replaced; undefined: it was not there before, or is not any more. */
  replaced(before: Row | undefined, after: Row | undefined): void {
    const row = after ?? before;
    if (row && hasMoved(before, after)) this.count(row);
  }

  /** These ranks were told to run on. They may be back at the same line before their rows are read again. */
  continued(rows: readonly Row[]): void {
    for (const row of rows) if (row.state === 'stopped') this.count(row);
  }

  private count({ group, rank, worker }: Row): void {
    if (worker !== null) return;
    const key = JSON.stringify([group, rank]);
    const found = this.counts.get(key);
    if (found) found.times++;
    else this.counts.set(key, { id: { group, rank }, times: 1 });
  }

  moment(): Moment {
    return new Map([...this.counts].map(([key, { times }]) => [key, times]));
  }

  /** The ranks that have moved since, in no particular order. */
  since(moment: Moment): RankId[] {
    return [...this.counts].flatMap(([key, { id, times }]) => (times === (moment.get(key) ?? 0) ? [] : [id]));
  }
}

function hasMoved(before: Row | undefined, after: Row | undefined): boolean {
  if (!before || !after) return true;
  return before.state !== after.state || before.pid !== after.pid || standsElsewhere(before, after);
}

/** The place of a stop may become known after the stop. */
function standsElsewhere(before: Row, after: Row): boolean {
  return before.line !== null && (before.line !== after.line || before.path !== after.path);
}
