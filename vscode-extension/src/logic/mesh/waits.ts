/** The arrows of the picture of the mesh: which rank waits for which, as `why` has answered. Pure. */

import { keyOf, rankKey } from '../ranks/rows';
import { setOf, unfold, whichRanks, type RankId } from '../ranks/sets';
import type { Wait } from '../why/answer';
import type { Layout } from './layout';

/** From one cell to another, by the names that these have. */
export type Arrow = readonly [string, string];

export interface Waiting {
  readonly arrows: readonly Arrow[];
  /** By the name of the waiting cell: `rank 2`. */
  readonly awaitedBy: ReadonlyMap<string, string>;
  readonly awaited: ReadonlySet<string>;
  readonly sentences: readonly string[];
  /** When it was asked, and the verdict; empty: never. */
  readonly heading: string;
}

export const NOBODY_ASKED: Waiting = { arrows: [], awaitedBy: new Map(), awaited: new Set(), sentences: [], heading: '' };

const MOST_ARROWS = 24; // more are a mess
const MOST_TARGETS = 4; // of one rank; of more the nearest
const MOST_SENTENCES = 12;

/** `moved`: ranks that have run on since, of which this is not true any more. */
export function waitingOf(waits: readonly Wait[], moved: readonly RankId[], group: string, layout: Layout): Omit<Waiting, 'heading'> {
  const places = placesOf(layout);
  const gone = new Set(moved.map(rankKey));
  const awaitedBy = new Map<string, string>();
  const awaited = new Set<string>();
  const sentences: string[] = [];
  const arrows: { arrow: Arrow; length: number }[] = [];
  for (const { ranks, for: target } of waits) {
    const waiting = unfold(ranks, group).filter((id) => !gone.has(rankKey(id)));
    if (waiting.length === 0) continue;
    const targets = unfold(target, group).map(rankKey);
    const words = whichRanks(target);
    for (const to of targets) awaited.add(to);
    for (const from of waiting.map(rankKey)) {
      awaitedBy.set(from, words);
      arrows.push(...arrowsFrom(from, targets, places));
    }
    sentences.push(`${whichRanks(setOf(waiting, ranks.includes(':')))} ${waiting.length === 1 ? 'waits' : 'wait'} for ${words}`);
  }
  arrows.sort((one, other) => one.length - other.length);
  const drawn = arrows.slice(0, MOST_ARROWS).map(({ arrow }) => arrow);
  return { arrows: drawn, awaitedBy, awaited, sentences: inShort(sentences, arrows.length) };
}

function inShort(sentences: readonly string[], arrows: number): string[] {
  const more = sentences.length > MOST_SENTENCES ? [`and ${sentences.length - MOST_SENTENCES} more`] : [];
  const drawn = arrows > MOST_ARROWS ? [`the shortest ${MOST_ARROWS} of ${arrows} arrows are drawn`] : [];
  return [...sentences.slice(0, MOST_SENTENCES), ...more, ...drawn];
}

type Places = ReadonlyMap<string, readonly [number, number]>;

function placesOf({ lines }: Layout): Places {
  const cells = lines.flatMap((line, down) => line.cells.map((row, across) => ({ row, down, across })));
  return new Map(cells.flatMap(({ row, down, across }) => (row ? [[keyOf(row), [down, across]]] : [])));
}

function arrowsFrom(from: string, targets: readonly string[], places: Places): { arrow: Arrow; length: number }[] {
  const start = places.get(from);
  if (!start) return [];
  const found = targets.flatMap((to) => {
    const end = places.get(to);
    return end ? [{ arrow: [from, to] as const, length: Math.hypot(end[0] - start[0], end[1] - start[1]) }] : [];
  });
  found.sort((one, other) => one.length - other.length);
  return found.slice(0, found.length > MOST_TARGETS ? 1 : MOST_TARGETS);
}
