/// <reference lib="dom" />
/** The script of the Parallel Watch's page: shows the table it is sent, tells what the user does. */

import './watch.css';
import type { FromPage, Kept, ToPage } from '../logic/watch/messages';
import { closest, connect, element, tellProblem } from './shared/page';

const host = connect<FromPage, ToPage, Kept>(show);

const expression = element('expression') as HTMLInputElement;
const ranks = element('ranks') as HTMLInputElement;
const result = element('result');

function show(data: ToPage): void {
  tellProblem(data.type === 'problem' ? data.message : undefined);
  if (data.type === 'problem') return;
  host.setState(data.kept);
  if (document.activeElement !== ranks) ranks.value = data.kept.ranks;
  element('state').textContent = data.state;
  const focused = positionOfFocus();
  result.innerHTML = data.html; // escaped where it was made, and no script in it would run
  if (focused >= 0) buttons()[Math.min(focused, buttons().length - 1)]?.focus();
}

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
  const button = closest(target, 'button');
  if (!button) return;
  const row = Number(button.dataset['row']);
  if (button.className === 'go') host.postMessage({ type: 'go', row, at: Number(button.dataset['at']) });
  else host.postMessage({ type: button.className === 'remove' ? 'remove' : 'detail', row });
});
