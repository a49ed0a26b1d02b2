/** How ranks and classes of ranks read, in a row, in its tooltip and to a screen reader. Pure. */

import type { RankClass } from './classes';
import type { Row } from './rows';
import { foldNumbers, ranksWord } from './sets';

export interface Words {
  readonly label: string;
  readonly description: string;
  readonly tooltip: string;
  readonly spoken: string;
}

export function fileOf(path: string): string {
  return path.split(/[/\\]/).at(-1) ?? path;
}

/** `rank 3`, `rank 3 @trainer`, `rank 3 / worker 1`. */
export function nameOf(row: Row, several: boolean): string {
  const group = several ? ` @${row.group}` : '';
  return `rank ${row.rank}${group}${row.worker === null ? '' : ` / worker ${row.worker}`}`;
}

export function coordsOf(row: Row): string {
  return Object.entries(row.coords ?? {})
    .map(([name, at]) => `${name}=${at}`)
    .join(' ');
}

function placeOf(at: { path: string | null; line: number | null }): string {
  return at.path === null ? '' : `${fileOf(at.path)}:${at.line ?? '?'}`;
}

/** What a class has in common: `train.py:41`, or its state where it stands nowhere. */
export function classWords(found: RankClass, several: boolean): Words {
  const place = placeOf(found);
  const state = found.exception ? 'stopped at an exception' : found.state;
  const who = foldNumbers(found.rows.map((row) => row.rank));
  const members = ranksWord(found.rows.length);
  const group = several ? ` @${found.group}` : '';
  const where = found.function === null ? place : `${place} in ${found.function}`;
  return {
    label: place || state,
    description: `${members} · ${who}${group}`,
    tooltip: [`${members} ${state}${group}: ${who}`, where].filter(Boolean).join('\n'),
    spoken: `${members} ${state}${place && ` at ${where}`}: ${who}${group}`,
  };
}

/** What tells a rank from its neighbours comes first: a side bar is narrow. */
export function rankWords(row: Row, several: boolean): Words {
  const name = nameOf(row, several);
  const state = stateOf(row);
  const place = row.function === null ? '' : `${row.function}:${row.line ?? '?'}`;
  const parts = [coordsOf(row), state, place].filter(Boolean);
  const more = [
    placeOf(row),
    row.host && `host ${row.host}`,
    row.pid !== null && `process ${row.pid}`,
    row.thread && `thread ${row.thread}`,
  ];
  return {
    label: name,
    description: parts.join(' · '),
    tooltip: [`${name} · ${parts.join(' · ')}`, ...more].filter(Boolean).join('\n'),
    spoken: [name, ...parts].join(', '),
  };
}

/** The state, and why where that is not plain from it. */
function stateOf(row: Row): string {
  if (row.state === 'exited' && row.exitCode !== null) return `exited with code ${row.exitCode}`;
  if (row.state === 'stopped' && row.reason === 'exception') return 'exception';
  const known = ['stopped', 'running', 'pausing'].includes(row.state);
  return known || !row.reason ? row.state : `${row.state}: ${row.reason}`;
}
