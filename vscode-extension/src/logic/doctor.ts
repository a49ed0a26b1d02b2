/** What the command *Doctor* asks of dap-mux, and what is shown of its answers. */

export interface Question {
  readonly words: readonly string[];
  readonly limit: number; // ms
}

const SOON = 20_000;
const LATER = 180_000; // a rank that does not answer is given its time, one after the other

/** The doctor first: it says what is wrong, the rest is to pass on. */
export const QUESTIONS: readonly Question[] = [
  { words: ['--version'], limit: SOON },
  { words: ['doctor'], limit: LATER },
  { words: ['sessions'], limit: SOON },
  { words: ['config', 'show'], limit: SOON },
];

/** What a command has said that ended with an error: the doctor's page, where it names causes. */
export function said(error: unknown): string {
  const { stdout, stderr } = error as { stdout?: unknown; stderr?: unknown };
  const texts = [stdout, stderr].filter((text) => typeof text === 'string' && text !== '');
  return texts.length > 0 ? texts.join('') : String(error);
}
