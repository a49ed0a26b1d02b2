/** Whether the values that the Compare view shows are still those of now, and if not, of when they are. Pure. */

import { foldNumbers, setOf, type RankId } from '../ranks/sets';
import { idsOf, type CompareBody } from './answer';

/** Where the values come from: a session that runs, one that has ended, or the window before it was reloaded. */
export type Origin =
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
  if (origin.kind === 'ended') return 'These values are from a session that has ended.';
  if (origin.kind === 'reloaded') return 'These values are from before the window was reloaded.';
  const compared = idsOf(body);
  const isCompared = ({ group, rank }: RankId): boolean =>
    compared.some((id) => id.rank === rank && (id.group === '' || id.group === group));
  const moved = origin.moved.filter(isCompared);
  if (moved.length === 0) return '';
  const several = compared.some(({ group }) => group !== '');
  const set = several ? setOf(moved, true) : foldNumbers(moved.map(({ rank }) => rank));
  return `These values are from an earlier stop: ${moved.length === 1 ? 'rank' : 'ranks'} ${set} ${moved.length === 1 ? 'has' : 'have'} run on since.`;
}
