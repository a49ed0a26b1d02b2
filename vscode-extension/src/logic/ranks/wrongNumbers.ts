/** Wrong numbers in the session's messages: where one was made, and what has other values in some rank. Pure. */

import type { Message } from './frames';

export interface WrongNumber {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** `dap-mux: diverged: step 3, rank 1: …, at train.py:34 f; …` (dap_mux/engine/numerics): what is said before the place. */
const SAID = /^dap-mux: (?:diverged: |(?=[^\n]*?: not finite: ))(.+?)(?:: made by |: given to |, at |; |\n)/;
const COMPARE = /; compare: (.+)$/s;

interface Output {
  readonly category?: string;
  readonly output?: string;
  readonly source?: { readonly path?: string };
  readonly line?: number;
}

/** The line that the session names for it; undefined for every other message. */
export function wrongNumberIn({ event, body }: Message): WrongNumber | undefined {
  return event === 'output' ? marked(body as Output) : undefined;
}

function marked({ category, output = '', source, line }: Output): WrongNumber | undefined {
  const text = category === 'important' ? SAID.exec(output)?.[1] : undefined;
  const path = source?.path;
  return text && path && line ? { path, line, text } : undefined;
}

/** A thread that has stopped because ranks differ; undefined for every other message. */
export function divergedThread({ event, body }: Message): number | undefined {
  if (event !== 'stopped') return undefined;
  const { text, threadId } = body as { text?: string; threadId?: number };
  return text === 'Diverged' ? threadId : undefined;
}

/** The expression at the end of such a stop's description (dap_mux/rank/comm/live.py); undefined if there is none. */
export function comparedAt(description = ''): string | undefined {
  return COMPARE.exec(description)?.[1];
}
