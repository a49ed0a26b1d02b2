/** Ranks that have died or failed: in the session's messages, and in rows. Pure. */

import type { Message } from './frames';
import type { Row } from './rows';

/** `dap-mux: rank 1 died: SIGSEGV (11); last stopped at train.py:6 in train` (dap_mux/engine/ranks/deaths.py). */
const RANKS = String.raw`ranks? (?:[^ :;]+:)?[\d,-]+(?:; [^ :;]+:[\d,-]+)*`;
const DEATH = new RegExp(String.raw`^dap-mux: (${RANKS} (?:died: |failed: |ended for an unknown reason)[^\n]*)`);

/** The session's message that ranks have died; undefined for every other message. */
export function deathIn({ event, body }: Message): string | undefined {
  if (event !== 'output') return undefined;
  const { category, output } = body as { category?: unknown; output?: unknown };
  return category === 'stderr' && typeof output === 'string' ? DEATH.exec(output)?.[1] : undefined;
}

/** One message for several deaths: the first tells the cause, the others are often its consequence. */
export function deathMessage([first = '', ...others]: readonly string[]): string {
  return others.length === 0 ? first : `${first} (${others.length} more in the log)`;
}

/** Whether the rank has died or failed; `waiting` and failed is a rank that is held at its exception. */
export function isDead({ state, reason, exitCode }: Row): boolean {
  if (state !== 'exited' && state !== 'waiting') return false;
  return (state === 'exited' && (exitCode ?? 0) !== 0) || (reason ?? '').startsWith('failed: ');
}
