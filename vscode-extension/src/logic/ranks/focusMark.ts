/** Which of several lines with stopped ranks is that of the focus: VS Code draws the same arrow at each. Pure. */

import { nameOf } from './labels';
import { severalGroups, type Row } from './rows';

export interface FocusMark {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** Undefined unless ranks are stopped at several lines of visible files, one of them the focused thread's. */
export function focusMark(
  rows: readonly Row[],
  threadId: number,
  isVisible: (path: string) => boolean,
): FocusMark | undefined {
  const places = new Set<string>();
  let focus: FocusMark | undefined;
  for (const row of rows) {
    const { state, path, line } = row;
    if (state !== 'stopped' || path === null || line === null || !isVisible(path)) continue;
    places.add(`${line} ${path}`);
    if (row.threadId === threadId) focus = { path, line, text: `◀ focus: ${nameOf(row, severalGroups(rows))}` };
  }
  return places.size > 1 ? focus : undefined;
}
