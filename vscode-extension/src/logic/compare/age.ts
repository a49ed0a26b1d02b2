/** Whether the values that the Compare view shows are still those of now, and if not, of when they are. Pure. */

import { foldNumbers, setOf, type RankId } from '../ranks/sets';
import { idsOf, type CompareBody } from './answer';

/**
 * Where the values come from: a session that runs, one that has ended, the window before it was reloaded, or
 * the comparison before the one that was refused.
 */
export type Origin =
  | { readonly kind: 'refused'; readonly expression: string; readonly ranks: string }
  | { readonly kind: 'running'; readonly moved: readonly RankId[] }
  | { readonly kind: 'ended' }
  | { readonly kind: 'reloaded' };

export interface Age {
  /** Of when the values are; empty: of now. */
  readonly words: string;
  /** Whether a session runs that can be asked again. */
  readonly session: boolean;
}

/** `session`: whether any session runs, which need not be the one that the values come from. */
export function ageOf(body: CompareBody, origin: Origin, session: boolean): Age {
  const words = wordsFor(body, origin);
  return { words: words && !session ? `${words} No session is running now.` : words, session };
}

function wordsFor(body: CompareBody, origin: Origin): string {
  switch (origin.kind) {
    case 'running':
      return wordsForMoved(body, origin.moved);
    case 'ended':
      return 'These values are from a session that has ended.';
    case 'reloaded':
      return 'These values are from before the window was reloaded.';
    case 'refused':
      return `These values are from the comparison before: ${origin.expression} in ${origin.ranks === 'all' ? 'all ranks' : origin.ranks}.`;
  }
}

function wordsForMoved(body: CompareBody, ids: readonly RankId[]): string {
  const compared = idsOf(body);
  const isCompared = ({ group, rank }: RankId): boolean =>
    compared.some((id) => id.rank === rank && (id.group === '' || id.group === group));
  const moved = ids.filter(isCompared);
  if (moved.length === 0) return '';
  const several = compared.some(({ group }) => group !== '');
  const set = several ? setOf(moved, true) : foldNumbers(moved.map(({ rank }) => rank));
  return `These values are from an earlier stop: ${moved.length === 1 ? 'rank' : 'ranks'} ${set} ${moved.length === 1 ? 'has' : 'have'} run on since.`;
}
