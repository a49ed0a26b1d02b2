/** Questions that are checked and completed by the session while the user types. */

import * as vscode from 'vscode';
import { Coalesced } from '../logic/coalesced';
import type { Listing, Row } from '../logic/ranks/rows';
import { whichRanks } from '../logic/ranks/sets';
import {
  commandsFor,
  completed,
  readySets,
  typedRanks,
  type NamedSet,
  type Suggestion,
  type Target,
} from '../logic/ranks/suggestions';
import type { Live } from './live';

const MOMENT = 120; // ms

interface Question {
  readonly title: string;
  readonly placeholder: string;
  readonly suggest: (typed: string) => Promise<Suggestion[]>;
}

type Item = vscode.QuickPickItem & { readonly suggestion: Suggestion };

/** Ask for a text; resolves to undefined where the user gives up. */
function ask(question: Question): Promise<string | undefined> {
  const pick = vscode.window.createQuickPick<Item>();
  let hurried = false; // Enter was pressed before the text had been looked at
  const refresh = new Coalesced(async () => {
    await offer(pick, question);
    if (hurried && !pick.busy) take(pick.items[0]);
  }, MOMENT);
  const look = (): void => {
    pick.busy = true;
    hurried = false;
    refresh.poke();
  };
  let take: (chosen: Item | undefined) => void = () => undefined;
  pick.title = question.title;
  pick.placeholder = question.placeholder;
  pick.ignoreFocusOut = true; // ranks that stop meanwhile take the focus to the editor
  return new Promise((resolve) => {
    pick.onDidChangeValue(look);
    take = (chosen) => {
      if (chosen?.suggestion.take) {
        resolve(chosen.suggestion.text);
        pick.hide();
      } else if (chosen && chosen.suggestion.text !== pick.value) {
        pick.value = chosen.suggestion.text;
        look();
      }
    };
    pick.onDidAccept(() => {
      if (pick.busy) hurried = true;
      else take(pick.activeItems[0]);
    });
    pick.onDidHide(() => {
      refresh.dispose();
      pick.dispose();
      resolve(undefined);
    });
    pick.show();
    look();
  });
}

async function offer(pick: vscode.QuickPick<Item>, { suggest }: Question): Promise<void> {
  const typed = pick.value;
  const found = await suggest(typed);
  if (pick.value !== typed) return; // typed on meanwhile: the next look is under way
  pick.items = found.map((suggestion) => ({
    suggestion,
    label: suggestion.label,
    description: suggestion.description,
    alwaysShow: true,
  }));
  pick.busy = false;
}

export async function askRanks(live: Live, title: string): Promise<string | undefined> {
  const { groups } = await live.request<{ groups: NamedSet[] }>('groups');
  return ask({
    title,
    placeholder: 'A rank set: 0-3,7   stopped   ranks(tp=0)   all - 3',
    suggest: async (typed) => {
      const text = typed.trim();
      if (text === '') return readySets(live.ranks.all(), groups);
      const own = typedRanks(text, await verdict(live, text));
      return [...own, ...(await completions(live, text, 'cast '))];
    },
  });
}

async function verdict(live: Live, ranks: string): Promise<{ ranks: readonly Row[]; problem: string }> {
  try {
    return { ranks: (await live.request<Listing>('list', { ranks })).ranks, problem: '' };
  } catch (error) {
    return { ranks: [], problem: error instanceof Error ? error.message : String(error) };
  }
}

async function completions(live: Live, typed: string, head: string): Promise<Suggestion[]> {
  try {
    const text = head + typed;
    const body = await live.request<{ targets: Target[] }>('completions', { text, column: text.length + 1 });
    return completed(typed, head, body.targets);
  } catch {
    return []; // nothing to complete, for example while nobody is stopped
  }
}

export function askCommand(live: Live, ranks: string, title: string): Promise<string | undefined> {
  return ask({
    title,
    placeholder: 'An expression, or a word of pdb: loss   p loss.shape   n   w   !x = 3',
    suggest: async (typed) => {
      const own = commandsFor(typed);
      return typed.trim() === '' ? own : [...own, ...(await completions(live, typed, `cast ${ranks} `))];
    },
  });
}

/** Ask for a name that is free to be used as `@name`. */
export function askName(ranks: string): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: `Name for ${whichRanks(ranks)}`,
    prompt: 'From then on @name means these ranks, in breakpoints and the debug console too',
    placeHolder: 'slow',
    ignoreFocusOut: true, // ranks that stop meanwhile take the focus to the editor
    validateInput: (text) =>
      /^@?[^\W\d][\w-]*$/.test(text) ? undefined : 'Letters, digits, _ and -; it begins with a letter',
  });
}
