/** The two texts of the status bar, and what can be chosen there. Pure. */

import type { Counts } from './rows';
import { ranksWord } from './sets';

export interface Choice {
  readonly value: string;
  readonly label: string;
  readonly detail: string;
}

/** `8 ranks · 6 stopped`; who is lost or has exited is told too. */
export function summary(counts: Counts): string {
  const total = Object.values(counts).reduce<number>((sum, count) => sum + (count ?? 0), 0);
  const told = ['stopped', 'lost', 'exited']
    .filter((state) => state === 'stopped' || counts[state])
    .map((state) => `${counts[state] ?? 0} ${state}`);
  return [ranksWord(total), ...told].join(' · ');
}

/** Every state that there is, a line each. */
export function details(counts: Counts): string {
  return Object.entries(counts)
    .filter(([, count]) => count)
    .map(([state, count]) => `${count ?? 0} ${state}`)
    .join('\n');
}

export const SCOPES: readonly Choice[] = [
  {
    value: 'auto',
    label: 'auto',
    detail: 'Continue and pause act on all ranks; a step on the ranks that stand at the same place',
  },
  { value: 'rank', label: 'rank', detail: 'Continue, pause and steps act on the rank in focus alone' },
  {
    value: 'class',
    label: 'class',
    detail: 'Continue, pause and steps act on the ranks that stand where the rank in focus stands',
  },
  { value: 'all', label: 'all', detail: 'Continue, pause and steps act on all ranks' },
];

export const VIEWS: readonly Choice[] = [
  { value: 'auto', label: 'auto', detail: 'One row a rank; with many ranks one row a place' },
  { value: 'ranks', label: 'ranks', detail: 'The call stack has one row for each rank' },
  {
    value: 'classes',
    label: 'classes',
    detail: 'The call stack has one row for all ranks that stand at the same place',
  },
];
