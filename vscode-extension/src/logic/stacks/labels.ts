/** The labels of the Parallel Stacks view, in rows, tooltips and for screen readers. Pure. */

import { fileOf, type Labels } from '../ranks/labels';
import { countedRanks, unfold, whichRanks } from '../ranks/sets';
import type { End, Frame, StackRow } from './tree';

/** A longer rank set stands behind the number of its ranks, where it may be cut. */
const MAX_SET_CHARS = 24;

export function stackLabels(row: StackRow): Labels {
  if (row.kind === 'thread') return { ...ranksLabels(row.name, row.ranks), label: row.name };
  if (row.kind === 'missing') return missingLabels(row.ranks, row.message);
  if (row.kind === 'branch') return branchLabels(row.ranks);
  return frameLabels(row.frame, row.frames, row.ranks, row.end);
}

function ranksLabels(name: string, ranks: string): Labels {
  const description = `${counted(ranks)} · ${ranks}`;
  return { label: name, description, tooltip: `${name}\n${description}`, spoken: `${name}, ${whichRanks(ranks)}` };
}

function branchLabels(ranks: string): Labels {
  const [label, description] = ranks.length > MAX_SET_CHARS ? [counted(ranks), ranks] : [ranks, counted(ranks)];
  return { label, description, tooltip: `${counted(ranks)}: ${ranks}`, spoken: whichRanks(ranks) };
}

function missingLabels(ranks: string, message: string): Labels {
  const label = ranks.length > MAX_SET_CHARS ? counted(ranks) : ranks;
  const told = `${whichRanks(ranks)}: ${message}`;
  return { label, description: message, tooltip: told, spoken: told };
}

function frameLabels(frame: Frame, frames: number, ranks: string, end: End | undefined): Labels {
  const place = `${fileOf(frame.path)}:${frame.line}`;
  const more = frames > 1 ? `${frames} library frames` : '';
  const parts = [place, more, end ? stateOf(end, ranks) : ''].filter(Boolean);
  return {
    label: frame.name,
    description: parts.join(' · '),
    tooltip: [frame.name, `${frame.path}:${frame.line}`, whichRanks(ranks), ...parts.slice(1)].join('\n'),
    spoken: [frame.name, ...parts, whichRanks(ranks)].join(', '),
  };
}

/** `running`; `stopped`; `0 running`, where others go on; `1 of 0-2 stopped`. */
function stateOf({ ranks, stopped }: End, all: string): string {
  const some = ranks === all ? '' : `${ranks} `;
  if (stopped === '') return `${some}running`;
  if (stopped === ranks) return `${some}stopped`;
  return `${stopped} of ${ranks} stopped`;
}

function counted(ranks: string): string {
  return countedRanks(unfold(ranks, '').length);
}
