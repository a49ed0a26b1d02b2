/** Input of rank sets and commands, which the session checks and completes while the user types. */

import * as vscode from 'vscode';
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
import { Throttler } from '../logic/throttler';
import type { RankSession } from './rankSession';

const SUGGEST_INTERVAL_MS = 120;

interface Prompt {
  readonly title: string;
  readonly placeholder: string;
  readonly suggest: (typed: string) => Promise<Suggestion[]>;
}

type Item = vscode.QuickPickItem & { readonly suggestion: Suggestion };

/** Resolves to undefined if the user cancels. */
function pickText(prompt: Prompt): Promise<string | undefined> {
  const pick = vscode.window.createQuickPick<Item>();
  let acceptWhenReady = false; // Enter was pressed before the suggestions were up to date
  const refresh = new Throttler(async () => {
    await update(pick, prompt);
    if (acceptWhenReady && !pick.busy) accept(pick.items[0]);
  }, SUGGEST_INTERVAL_MS);
  const suggest = (): void => {
    pick.busy = true;
    acceptWhenReady = false;
    refresh.schedule();
  };
  let accept: (item: Item | undefined) => void = () => undefined;
  pick.title = prompt.title;
  pick.placeholder = prompt.placeholder;
  pick.ignoreFocusOut = true; // a stop moves the focus to the editor
  return new Promise((resolve) => {
    pick.onDidChangeValue(suggest);
    accept = (item) => {
      if (item?.suggestion.complete) {
        resolve(item.suggestion.text);
        pick.hide();
      } else if (item && item.suggestion.text !== pick.value) {
        pick.value = item.suggestion.text;
        suggest();
      }
    };
    pick.onDidAccept(() => {
      if (pick.busy) acceptWhenReady = true;
      else accept(pick.activeItems[0]);
    });
    pick.onDidHide(() => {
      refresh.dispose();
      pick.dispose();
      resolve(undefined);
    });
    pick.show();
    suggest();
  });
}

async function update(pick: vscode.QuickPick<Item>, { suggest }: Prompt): Promise<void> {
  const typed = pick.value;
  const suggestions = await suggest(typed);
  if (pick.value !== typed) return; // outdated: another update is scheduled
  pick.items = suggestions.map((suggestion) => ({
    suggestion,
    label: suggestion.label,
    description: suggestion.description,
    ...(suggestion.problem === undefined ? {} : { detail: suggestion.problem }),
    alwaysShow: true,
  }));
  pick.busy = false;
}

export async function pickRankSet(session: RankSession, title: string): Promise<string | undefined> {
  const { groups } = await session.request<{ groups: NamedSet[] }>('groups');
  return pickText({
    title,
    placeholder: vscode.l10n.t('A rank set: 0-3,7   stopped   ranks(tp=0)   all - 3'),
    suggest: async (typed) => {
      const text = typed.trim();
      if (text === '') return readySets(session.ranks.all(), groups);
      const own = typedRanks(text, await evaluate(session, text));
      return [...own, ...(await completions(session, text, 'cast '))];
    },
  });
}

async function evaluate(
  session: RankSession,
  ranks: string,
): Promise<{ ranks: readonly Row[]; problem: string }> {
  try {
    return { ranks: (await session.request<Listing>('list', { ranks })).ranks, problem: '' };
  } catch (error) {
    return { ranks: [], problem: error instanceof Error ? error.message : String(error) };
  }
}

async function completions(session: RankSession, typed: string, head: string): Promise<Suggestion[]> {
  try {
    const text = head + typed;
    const column = text.length + 1;
    const body = await session.request<{ targets: Target[] }>('completions', { text, column });
    return completed(typed, head, body.targets);
  } catch {
    return []; // for example, while no rank is stopped
  }
}

export function pickCommand(
  session: RankSession,
  ranks: string,
  title: string,
): Promise<string | undefined> {
  return pickText({
    title,
    placeholder: vscode.l10n.t('An expression or a pdb command: loss   p loss.shape   n   w   !x = 3'),
    suggest: async (typed) => {
      const own = commandsFor(typed);
      return typed.trim() === '' ? own : [...own, ...(await completions(session, typed, `cast ${ranks} `))];
    },
  });
}

/** Input of a name for a rank set, to be used as `@name`. */
export function inputName(ranks: string): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: vscode.l10n.t('Name for {0}', whichRanks(ranks)),
    prompt: vscode.l10n.t('@name then means these ranks, also in breakpoints and the debug console'),
    placeHolder: 'slow',
    ignoreFocusOut: true, // a stop moves the focus to the editor
    validateInput: (text) =>
      /^@?[^\W\d][\w-]*$/.test(text) ? undefined
        : vscode.l10n.t('Use letters, digits, _ and -, beginning with a letter.'),
  });
}
