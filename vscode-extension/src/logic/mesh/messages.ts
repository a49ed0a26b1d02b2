/** What the picture of the mesh and its page say to each other, and what the page keeps over a reload. Pure. */

import type { RankId } from '../ranks/sets';
import type { Arrow } from './waits';

export type Colour = 'state' | 'class' | 'value';

export interface Kept {
  readonly colour: Colour;
  readonly expression: string;
  /** The dimension along the columns; empty: the last one. */
  readonly columns: string;
}

export const FIRST: Kept = { colour: 'class', expression: '', columns: '' };

export type FromPage =
  | { readonly type: 'ready'; readonly kept: Kept | null }
  | { readonly type: 'show'; readonly kept: Kept }
  | { readonly type: 'go'; readonly id: RankId }
  | { readonly type: 'scope' | 'name' | 'cast'; readonly ids: readonly RankId[] }
  | { readonly type: 'why' };

export interface Shown {
  readonly html: string;
  readonly arrows: readonly Arrow[];
  readonly dimensions: readonly string[];
  readonly columns: string;
  readonly kept: Kept;
}

export type ToPage = ({ readonly type: 'show' } & Shown) | { readonly type: 'problem'; readonly message: string };
