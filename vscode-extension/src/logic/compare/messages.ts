/** What the Compare view and its page say to each other. Pure. */

import type { Age } from './age';
import type { Comparison } from './answer';
import type { Shown } from './page';

export type FromPage =
  | { readonly type: 'ready'; readonly kept: Comparison | null }
  | { readonly type: 'ask'; readonly expression: string; readonly ranks: string }
  | { readonly type: 'again' }
  | { readonly type: 'export' }
  | { readonly type: 'group' }
  | { readonly type: 'go'; readonly index: number };

export type ToPage =
  | { readonly type: 'age'; readonly age: Age }
  | { readonly type: 'show'; readonly comparison: Comparison; readonly shown: Shown }
  | { readonly type: 'problem'; readonly message: string; readonly expression: string; readonly ranks: string };
