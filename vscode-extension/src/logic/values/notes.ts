/** Where the text of a program says that a variable differs between ranks. Pure. */

/** A row of DAP's `variables`, with what the session adds where other ranks have other values. */
export interface Variable {
  readonly name: string;
  readonly acrossRanks?: { readonly note: string };
}

export interface Note {
  readonly line: number;
  readonly column: number;
  readonly end: number;
  readonly text: string;
}

/** A variable that is further up than this belongs to another function as likely as to this one. */
const MAX_LINES = 60;

/** One note for each variable that differs, where it stands last above `line` or in it; lines count from 0. */
export function notesFor(textOf: (line: number) => string, line: number, variables: readonly Variable[]): Note[] {
  const left = new Map(variables.filter(isWorthANote).map(({ name, acrossRanks }) => [name, acrossRanks?.note ?? '']));
  const found: Note[] = [];
  for (let at = line; at >= Math.max(0, line - MAX_LINES) && left.size > 0; at--) {
    const text = withoutComment(textOf(at));
    for (const [, word = '', index] of words(text)) {
      const note = left.get(word);
      if (note === undefined) continue;
      left.delete(word);
      found.push({ line: at, column: index, end: index + word.length, text: `${word} ${note}` });
    }
    if (/^\s*(?:async\s+)?def\s/.test(text)) break;
  }
  return found;
}

/** A range says that the values of all ranks differ, as those of their numbers do: nobody asks why. */
function isWorthANote({ acrossRanks }: Variable): boolean {
  return acrossRanks !== undefined && !acrossRanks.note.includes(' … ');
}

function* words(text: string): Generator<[unknown, string | undefined, number]> {
  for (const match of text.matchAll(/(?<![\w.'"])([^\W\d]\w*)/gu)) yield [match, match[1], match.index];
}

function withoutComment(text: string): string {
  return text.replace(/(^|\s)#.*$/, '');
}
