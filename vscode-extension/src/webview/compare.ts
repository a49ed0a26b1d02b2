/// <reference lib="dom" />
/** The script of the Compare view's page: shows what it is told, tells what the user does. */

import './compare.css';
import type { Age } from '../logic/compare/age';
import type { Comparison } from '../logic/compare/answer';
import type { FromPage, ToPage } from '../logic/compare/messages';

interface Host {
  postMessage(message: FromPage): void;
  getState(): Comparison | undefined;
  setState(state: Comparison): void;
}
declare function acquireVsCodeApi(): Host;

const host = acquireVsCodeApi();

function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

const expression = element('expression') as HTMLInputElement;
const ranks = element('ranks') as HTMLInputElement;
const again = element('again') as HTMLButtonElement;
const group = element('group') as HTMLButtonElement;
const problem = element('problem');
const summary = element('summary');
const result = element('result');
let outliers = false;

window.addEventListener('message', ({ data }: MessageEvent<ToPage>) => {
  if (data.type === 'age') {
    showAge(data.age);
  } else if (data.type === 'show') {
    show(data);
    problem.hidden = true;
  } else {
    problem.textContent = data.message;
    problem.hidden = false;
    expression.value = data.expression;
    ranks.value = data.ranks;
  }
});

function show({ comparison, shown }: ToPage & { type: 'show' }): void {
  host.setState(comparison);
  expression.value = comparison.expression;
  ranks.value = comparison.ranks;
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

function linkOf(target: EventTarget | null): HTMLButtonElement | null {
  return target instanceof Element ? target.closest<HTMLButtonElement>('.go') : null;
}

result.addEventListener('click', ({ target }) => {
  const link = linkOf(target);
  if (link) host.postMessage({ type: 'go', index: Number(link.dataset['index']) });
});

function neighbour(link: HTMLButtonElement, key: string): HTMLButtonElement | undefined {
  const all = links();
  const moves: Record<string, number> = {
    ArrowDown: all.indexOf(link) + 1,
    ArrowUp: all.indexOf(link) - 1,
    Home: 0,
    End: all.length - 1,
  };
  const index = moves[key];
  return index === undefined ? undefined : all[index];
}

result.addEventListener('keydown', (event) => {
  const link = linkOf(event.target);
  const next = link && neighbour(link, event.key);
  if (!next) return;
  event.preventDefault();
  link.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});

host.postMessage({ type: 'ready', kept: host.getState() ?? null });
