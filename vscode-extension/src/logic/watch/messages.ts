/** What the Parallel Watch and its page say to each other, and what the page keeps over a reload. Pure. */

import { csvOf } from '../compare/csv';
import type { Watched } from './row';

export interface Kept {
  readonly expressions: readonly string[];
  readonly ranks: string;
}

export type FromPage =
  | { readonly type: 'ready'; readonly kept: Kept | null }
  | { readonly type: 'add'; readonly expression: string; readonly ranks: string }
  | { readonly type: 'remove' | 'detail'; readonly row: number }
  | { readonly type: 'go'; readonly row: number; readonly at: number }
  | { readonly type: 'export' };

export type ToPage =
  | { readonly type: 'show'; readonly html: string; readonly state: string; readonly kept: Kept }
  | { readonly type: 'problem'; readonly message: string };

/** One line a rank and expression. */
export function csvOfAll(watched: readonly Watched[], group: string): string {
  const lines = watched.flatMap(({ expression, body }) => {
    if (!body) return [];
    const quoted = `"${expression.replaceAll('"', '""')}"`;
    const safe = /^"[=+\-@\t\r]/.test(quoted) ? `"'${quoted.slice(1)}` : quoted;
    return csvOf(body, group).split('\r\n').slice(1, -1).map((line) => `${safe},${line}`);
  });
  return ['expression,group,rank,value,note', ...lines].map((line) => `${line}\r\n`).join('');
}
