/** The reports of the command *Doctor*. Pure. */

export interface Report {
  readonly args: readonly string[];
  readonly timeoutMs: number;
}

const DEFAULT_TIMEOUT_MS = 20_000;
/** The doctor waits for ranks that do not respond, one after the other. */
const DOCTOR_TIMEOUT_MS = 180_000;

/** The doctor comes last: what is wrong is at the end, in sight; the rest is for bug reports. */
export const REPORTS: readonly Report[] = [
  { args: ['--version'], timeoutMs: DEFAULT_TIMEOUT_MS },
  { args: ['sessions'], timeoutMs: DEFAULT_TIMEOUT_MS },
  { args: ['config', 'show'], timeoutMs: DEFAULT_TIMEOUT_MS },
  { args: ['doctor'], timeoutMs: DOCTOR_TIMEOUT_MS },
];

/** The output of a command that failed, as the doctor does when it has found a cause. */
export function outputOf(error: unknown): string {
  const { stdout, stderr } = error as { stdout?: unknown; stderr?: unknown };
  const texts = [stdout, stderr].filter((text) => typeof text === 'string' && text !== '');
  return texts.length > 0 ? texts.join('') : String(error);
}
