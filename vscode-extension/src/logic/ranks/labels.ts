/** The labels of ranks and classes, in rows, tooltips and for screen readers. Pure. */

import { isException, type RankClass } from './classes';
import { isDead } from './deaths';
import type { Row } from './rows';
import { countedRanks, foldNumbers, whichRanks } from './sets';

export interface Labels {
  readonly label: string;
  readonly description: string;
  readonly tooltip: string;
  readonly spoken: string;
}

export function fileOf(path: string): string {
  return path.split(/[/\\]/).at(-1) ?? path;
}

/** Whether it is the path of a file, and not `<frozen runpy>` or a relative name. */
export function isFile(path: string): boolean {
  return /^(?:\/|[A-Za-z]:[\\/]|\\\\)/.test(path);
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

/** `train.py:41`. */
export function placeOf(at: { path: string | null; line: number | null }): string {
  return at.path === null ? '' : `${fileOf(at.path)}:${at.line ?? '?'}`;
}

/** The label is the place, `train.py:41`, or else the state. */
export function classLabels(found: RankClass, several: boolean): Labels {
  const place = placeOf(found);
  const state = classState(found);
  const ranks = foldNumbers(found.rows.map((row) => row.rank));
  const members = countedRanks(found.rows.length);
  const group = several ? ` @${found.group}` : '';
  const where = found.function === null ? place : `${place} in ${found.function}`;
  return {
    label: place || state,
    description: `${members} · ${ranks}${group}`,
    tooltip: [`${members} ${state}${group}: ${ranks}`, where].filter(Boolean).join('\n'),
    spoken: `${members} ${state}${place && ` at ${where}`}: ${ranks}${group}`,
  };
}

/** Some ranks of a long list: `ranks 0-31`. */
export function bundleLabels(rows: readonly Row[]): Labels {
  const ranks = whichRanks(foldNumbers(rows.map(({ rank }) => rank)));
  const members = countedRanks(rows.length);
  return { label: ranks, description: members, tooltip: `${members}: ${ranks}`, spoken: `${ranks}, ${members}` };
}

function classState({ dead, exception, state }: RankClass): string {
  if (dead) return state === 'exited' ? 'died' : 'failed';
  return exception ? 'stopped at an exception' : state;
}

/** The description begins with what distinguishes ranks, because the side bar is narrow. */
export function rankLabels(row: Row, several: boolean): Labels {
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

const SELF_EXPLANATORY = new Set(['stopped', 'pausing']); // a running rank may wait for others

/** The state, with the reason if the state alone does not tell. */
function stateOf(row: Row): string {
  const { state, reason, exitCode } = row;
  if (isDead(row) && reason) return deathOf(reason);
  if (state === 'exited' && exitCode !== null) return `exited with code ${exitCode}`;
  if (isException(row)) return 'exception';
  return SELF_EXPLANATORY.has(state) || !reason ? state : `${state}: ${reason}`;
}

function deathOf(reason: string): string {
  return reason.startsWith('failed: ') ? reason : `died: ${reason}`;
}
