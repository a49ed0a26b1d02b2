/** The body of `why` (docs/protocol.md), and its suspects as they are shown. Pure. */

import type { Frame } from '../stacks/tree';

export interface Suspect {
  readonly ranks: string;
  /** The innermost frame comes first. */
  readonly stack: readonly Frame[];
  readonly waitingFor: string;
}

/** The ranks of the first set wait for those of the second. */
export interface Wait {
  readonly ranks: string;
  readonly for: string;
}

export interface WhyBody {
  readonly verdict: string;
  readonly sentence: string;
  /** The culprit comes first. */
  readonly suspects: readonly Suspect[];
  readonly evidence: readonly string[];
  readonly next: string;
  /** An older session tells none. */
  readonly waits?: readonly Wait[];
}

/** Verdicts that accuse nobody. */
export const FINE: ReadonlySet<string> = new Set(['healthy', 'undecided']);
