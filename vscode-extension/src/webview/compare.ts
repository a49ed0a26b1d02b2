/// <reference lib="dom" />
/** The script of the Compare view's page: shows what it is told, tells what the user does. */

import './compare.css';
import type { Age } from '../logic/compare/age';
import type { Comparison } from '../logic/compare/answer';
import type { FromPage, ToPage } from '../logic/compare/messages';
import { closest, connect, element, tellProblem } from './shared/page';

const host = connect<FromPage, ToPage, Comparison>(take);

const expression = element('expression') as HTMLInputElement;
const ranks = element('ranks') as HTMLInputElement;
const again = element('again') as HTMLButtonElement;
const group = element('group') as HTMLButtonElement;
const summary = element('summary');
const result = element('result');
let outliers = false;

function take(data: ToPage): void {
  if (data.type === 'age') {
    showAge(data.age);
    return;
  }
  tellProblem(data.type === 'problem' ? data.message : undefined);
  const { expression: asked, ranks: of } = data.type === 'show' ? data.comparison : data;
  expression.value = asked;
  ranks.value = of;
  if (data.type === 'show') show(data);
}

function show({ comparison, shown }: ToPage & { type: 'show' }): void {
  host.setState(comparison);
  summary.textContent = shown.summary;
  result.innerHTML = shown.html; // escaped where it was made, and no script in it would run
  element('actions').hidden = false;
  ({ outliers } = shown);
}

/** Values that are not of now are said to be old in words, and are dimmed. */
function showAge({ words, session }: Age): void {
  element('words').textContent = words;
  element('age').hidden = words === '';
  for (const part of [summary, result]) part.classList.toggle('old', words !== '');
  again.disabled = !session;
  group.disabled = !session || !outliers;
  for (const link of links()) link.disabled = !session;
}

element('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  host.postMessage({ type: 'ask', expression: expression.value.trim(), ranks: ranks.value.trim() });
});
element('export').addEventListener('click', () => {
  host.postMessage({ type: 'export' });
});
again.addEventListener('click', () => {
  host.postMessage({ type: 'again' });
});
group.addEventListener('click', () => {
  host.postMessage({ type: 'group' });
});

function links(): HTMLButtonElement[] {
  return Array.from(result.querySelectorAll<HTMLButtonElement>('.go'));
}

result.addEventListener('click', ({ target }) => {
  const link = closest(target, '.go');
  if (link) host.postMessage({ type: 'go', index: Number(link.dataset['index']) });
});

function neighbour(link: HTMLElement, key: string): HTMLElement | undefined {
  const all: HTMLElement[] = links();
  const at = all.indexOf(link);
  const moves: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 };
  const index = moves[key];
  return index === undefined ? undefined : all[index];
}

result.addEventListener('keydown', (event) => {
  const link = closest(event.target, '.go');
  const next = link && neighbour(link, event.key);
  if (!next) return;
  event.preventDefault();
  link.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});
