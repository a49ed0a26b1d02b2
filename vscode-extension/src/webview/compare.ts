/// <reference lib="dom" />
/** The script of the Compare view's page: shows what it is told, tells what the user does. */

import './compare.css';
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
const problem = element('problem');
const result = element('result');

window.addEventListener('message', ({ data }: MessageEvent<ToPage>) => {
  if (data.type === 'show') {
    show(data);
  } else {
    problem.textContent = data.message;
    expression.value = data.expression;
    ranks.value = data.ranks;
  }
  problem.hidden = data.type === 'show';
});

function show({ comparison, shown }: ToPage & { type: 'show' }): void {
  host.setState(comparison);
  expression.value = comparison.expression;
  ranks.value = comparison.ranks;
  element('summary').textContent = shown.summary;
  result.innerHTML = shown.html; // escaped where it was made, and no script in it would run
  element('actions').hidden = false;
  (element('group') as HTMLButtonElement).disabled = !shown.outliers;
}

element('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  host.postMessage({ type: 'ask', expression: expression.value.trim(), ranks: ranks.value.trim() });
});
element('export').addEventListener('click', () => {
  host.postMessage({ type: 'export' });
});
element('group').addEventListener('click', () => {
  host.postMessage({ type: 'group' });
});

function rowOf(target: EventTarget | null): HTMLElement | null {
  return target instanceof Element ? target.closest<HTMLElement>('tbody tr') : null;
}

function go(row: HTMLElement): void {
  host.postMessage({ type: 'go', index: Number(row.dataset['index']) });
}

result.addEventListener('dblclick', ({ target }) => {
  const row = rowOf(target);
  if (row) go(row);
});

function neighbour(row: HTMLElement, key: string): Element | null | undefined {
  const moves: Record<string, () => Element | null | undefined> = {
    ArrowDown: () => row.nextElementSibling,
    ArrowUp: () => row.previousElementSibling,
    Home: () => row.parentElement?.firstElementChild,
    End: () => row.parentElement?.lastElementChild,
  };
  return moves[key]?.();
}

result.addEventListener('keydown', (event) => {
  const row = rowOf(event.target);
  if (!row) return;
  if (event.key === 'Enter') go(row);
  const next = neighbour(row, event.key);
  if (next instanceof HTMLElement) {
    event.preventDefault();
    row.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
});

host.postMessage({ type: 'ready', kept: host.getState() ?? null });
