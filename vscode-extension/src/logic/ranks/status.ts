/** The texts of the status bar, and the choices of its menus. Pure. */

import { isDead } from './deaths';
import type { Counts, Row } from './rows';
import { countedRanks } from './sets';

export interface Choice {
  readonly value: string;
  readonly label: string;
  readonly detail: string;
}

/** How many ranks are in each state; of those that have exited, `died` are counted apart. */
export function countsOf(rows: readonly Row[]): Counts {
  const counts: Record<string, number> = {};
  for (const row of rows) {
    const state = row.state === 'exited' && isDead(row) ? 'died' : row.state;
    counts[state] = (counts[state] ?? 0) + 1;
  }
  return counts;
}

/** `8 ranks · 6 stopped`, also with the ranks that have died, are lost or have exited. */
export function summary(counts: Counts): string {
  const total = Object.values(counts).reduce<number>((sum, count) => sum + (count ?? 0), 0);
  const told = ['stopped', 'died', 'lost', 'exited']
    .filter((state) => state === 'stopped' || counts[state])
    .map((state) => `${counts[state] ?? 0} ${state}`);
  return [countedRanks(total), ...told].join(' · ');
}

/** One line for each state. */
export function details(counts: Counts): string {
  return Object.entries(counts)
    .filter(([, count]) => count)
    .map(([state, count]) => `${count ?? 0} ${state}`)
    .join('\n');
}

/** Choices that are labelled with their values. */
function choices(details: Readonly<Record<string, string>>): Choice[] {
  return Object.entries(details).map(([value, detail]) => ({ value, label: value, detail }));
}

export const SCOPES = choices({
  auto: 'Continue and pause apply to all ranks, steps to the ranks at the same place',
  rank: 'Continue, pause and steps apply to the focused rank only',
  class: 'Continue, pause and steps apply to the ranks at the same place as the focused rank',
  all: 'Continue, pause and steps apply to all ranks',
});

export const VIEWS = choices({
  auto: 'One row for each rank; with many ranks, one for each place',
  ranks: 'The call stack has one row for each rank',
  classes: 'The call stack has one row for all ranks at the same place',
});
