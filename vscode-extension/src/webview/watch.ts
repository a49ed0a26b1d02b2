/// <reference lib="dom" />
/** The script of the Parallel Watch's page: shows the table it is sent, tells what the user does. */

import './watch.css';
import type { FromPage, Kept, ToPage } from '../logic/watch/messages';

interface Host {
  postMessage(message: FromPage): void;
  getState(): Kept | undefined;
  setState(state: Kept): void;
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
  problem.hidden = data.type === 'show';
  if (data.type === 'problem') {
    problem.textContent = data.message;
    return;
  }
  host.setState(data.kept);
  if (document.activeElement !== ranks) ranks.value = data.kept.ranks;
  element('state').textContent = data.state;
  const focused = positionOfFocus();
  result.innerHTML = data.html; // escaped where it was made, and no script in it would run
  if (focused >= 0) buttons()[Math.min(focused, buttons().length - 1)]?.focus();
});

function buttons(): HTMLButtonElement[] {
  return Array.from(result.querySelectorAll('button'));
}

/** A table that is drawn anew at each stop must not take the keyboard away. */
function positionOfFocus(): number {
  const { activeElement } = document;
  return activeElement instanceof HTMLButtonElement ? buttons().indexOf(activeElement) : -1;
}

element('add').addEventListener('submit', (event) => {
  event.preventDefault();
  host.postMessage({ type: 'add', expression: expression.value.trim(), ranks: ranks.value.trim() });
  expression.value = '';
});
ranks.addEventListener('change', () => {
  host.postMessage({ type: 'add', expression: '', ranks: ranks.value.trim() });
});
element('export').addEventListener('click', () => {
  host.postMessage({ type: 'export' });
});

result.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest('button') : null;
  if (!button) return;
  const row = Number(button.dataset['row']);
  if (button.className === 'go') host.postMessage({ type: 'go', row, at: Number(button.dataset['at']) });
  else host.postMessage({ type: button.className === 'remove' ? 'remove' : 'detail', row });
});

host.postMessage({ type: 'ready', kept: host.getState() ?? null });
