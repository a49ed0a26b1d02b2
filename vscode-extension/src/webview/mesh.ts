/// <reference lib="dom" />
/** The script of the page with the mesh: shows the grid it is sent, draws arrows on it, tells what the user selects. */

import './mesh.css';
import type { Colour, FromPage, Kept, ToPage } from '../logic/mesh/messages';
import type { Arrow } from '../logic/mesh/waits';
import { countedRanks, setOf, type RankId } from '../logic/ranks/sets';
import { closest, connect, element, tellProblem } from './shared/page';

const host = connect<FromPage, ToPage, Kept>(show);
const SVG = 'http://www.w3.org/2000/svg';
const BARB = 7; // px
const SHORTENED = 14; // px: an arrow ends beside the number of its cell

const colour = element('colour') as HTMLSelectElement;
const expression = element('expression') as HTMLInputElement;
const columns = element('columns') as HTMLSelectElement;
const result = element('result');
const buttons = Array.from(document.querySelectorAll<HTMLButtonElement>('[data-action]'));

type Place = readonly [line: number, column: number];
let anchor: Place | undefined;
let head: Place = [0, 0];
let arrows: readonly Arrow[] = [];

function show(data: ToPage): void {
  tellProblem(data.type === 'problem' ? data.message : undefined);
  if (data.type === 'problem') return;
  const hadKeys = result.contains(document.activeElement);
  const { kept } = data;
  host.setState(kept);
  colour.value = kept.colour;
  element('of').hidden = kept.colour !== 'value';
  if (document.activeElement !== expression) expression.value = kept.expression;
  columns.replaceChildren(...data.dimensions.map((name) => new Option(name)));
  columns.value = data.columns;
  element('along').hidden = data.dimensions.length < 2;
  result.innerHTML = data.html; // escaped where it was made, and no script in it would run
  ({ arrows } = data);
  if (!cellAt(head)) [head, anchor] = [[0, 0], undefined];
  mark();
  if (hadKeys) cellAt(head)?.focus({ preventScroll: true });
  draw();
}

function tell(): void {
  const kept: Kept = { colour: colour.value as Colour, expression: expression.value.trim(), columns: columns.value };
  element('of').hidden = kept.colour !== 'value';
  host.postMessage({ type: 'show', kept });
}
for (const field of [colour, expression, columns]) field.addEventListener('change', tell);
element('choose').addEventListener('submit', (event) => {
  event.preventDefault();
});
element('why').addEventListener('click', () => {
  host.postMessage({ type: 'why' });
});
for (const button of buttons) {
  button.addEventListener('click', () => {
    host.postMessage({ type: button.dataset['action'] as 'scope' | 'name' | 'cast', ids: selected().map(idOf) });
  });
}

// What is selected: the rectangle between two cells

function cells(): HTMLElement[] {
  return Array.from(result.querySelectorAll<HTMLElement>('td[data-line]'));
}

function placeOf({ dataset }: HTMLElement): Place {
  return [Number(dataset['line']), Number(dataset['column'])];
}

function cellAt([line, column]: Place): HTMLElement | null {
  return result.querySelector(`td[data-line="${line}"][data-column="${column}"]`);
}

function idOf({ dataset }: HTMLElement): RankId {
  return { group: dataset['group'] ?? '', rank: Number(dataset['rank']) };
}

function selected(): HTMLElement[] {
  const [one, other] = [anchor, head];
  if (!one) return [];
  const between = (at: number, first: number, last: number): boolean => Math.min(first, last) <= at && at <= Math.max(first, last);
  return cells().filter((cell) => {
    const [line, column] = placeOf(cell);
    return cell.dataset['id'] !== undefined && between(line, one[0], other[0]) && between(column, one[1], other[1]);
  });
}

function mark(): void {
  const chosen = new Set(selected());
  for (const cell of cells()) {
    cell.setAttribute('aria-selected', String(chosen.has(cell)));
    cell.tabIndex = -1;
  }
  const first = cellAt(head);
  if (first) first.tabIndex = 0;
  for (const button of buttons) button.disabled = chosen.size === 0;
  if (chosen.size === 0) return;
  const ids = [...chosen].map(idOf);
  const named = new Set(cells().map(({ dataset }) => dataset['group'] ?? '')).size > 1;
  element('selected').textContent = `${countedRanks(ids.length)} selected: ${setOf(ids, named)}`;
}

function select(from: Place, to: Place): void {
  [anchor, head] = [from, to];
  mark();
  cellAt(to)?.focus();
}

result.addEventListener('pointerdown', (event) => {
  const cell = closest(event.target, 'td[data-line]');
  if (!cell) return;
  event.preventDefault(); // no text is selected
  select(event.shiftKey && anchor ? anchor : placeOf(cell), placeOf(cell));
});
result.addEventListener('pointerover', ({ target, buttons: pressed }) => {
  const cell = closest(target, 'td[data-line]');
  if (cell && anchor && pressed === 1) select(anchor, placeOf(cell));
});
result.addEventListener('dblclick', ({ target }) => {
  go(closest(target, 'td[data-id]'));
});

function end(): Place {
  const last = cells().at(-1);
  return last ? placeOf(last) : [0, 0];
}

function go(cell: HTMLElement | null): void {
  if (cell?.dataset['id'] !== undefined) host.postMessage({ type: 'go', id: idOf(cell) });
}

const STEPS: Readonly<Record<string, Place>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

result.addEventListener('keydown', (event) => {
  const cell = closest(event.target, 'td[data-line]');
  const step = STEPS[event.key];
  if (!cell) return;
  if (event.key === 'Enter') go(cell);
  else if (step) move(event.ctrlKey || event.metaKey ? [step[0] || step[1], step[1]] : step, event.shiftKey);
  else return;
  event.preventDefault();
});

/** To another cell, which is selected alone, or `further`: as the other corner of the rectangle. */
function move([down, across]: Place, further: boolean): void {
  const [line, column] = end();
  const to: Place = [Math.max(0, Math.min(head[0] + down, line)), Math.max(0, Math.min(head[1] + across, column))];
  select(further ? (anchor ?? head) : to, to);
}

// A page that has lost the keys and gets them back begins after its end: the next Tab would leave it.
window.addEventListener('focus', () => {
  if (document.activeElement === document.body) cellAt(head)?.focus({ preventScroll: true });
});

// Arrows

function draw(): void {
  result.querySelector('svg')?.remove();
  const picture = result.querySelector('#picture');
  if (!picture || arrows.length === 0) return;
  const named = new Map(cells().map((cell) => [cell.dataset['id'], cell]));
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('aria-hidden', 'true'); // the sentences below say the same
  svg.setAttribute('width', `${picture.scrollWidth}`);
  svg.setAttribute('height', `${picture.scrollHeight}`);
  for (const [from, to] of arrows) {
    const [start, target] = [named.get(from), named.get(to)];
    if (start && target) svg.append(lineBetween(centreOf(start), centreOf(target)));
  }
  picture.append(svg);
}

function centreOf({ offsetLeft, offsetTop, offsetWidth, offsetHeight }: HTMLElement): Place {
  return [offsetLeft + offsetWidth / 2, offsetTop + offsetHeight / 2];
}

/** A shaft and a head. */
function lineBetween([x, y]: Place, [toX, toY]: Place): SVGPathElement {
  const angle = Math.atan2(toY - y, toX - x);
  const at = (fromX: number, fromY: number, far: number, turned = 0): string =>
    `${(fromX + far * Math.cos(angle + turned)).toFixed(1)} ${(fromY + far * Math.sin(angle + turned)).toFixed(1)}`;
  const [tipX, tipY] = [toX - SHORTENED * Math.cos(angle), toY - SHORTENED * Math.sin(angle)];
  const path = document.createElementNS(SVG, 'path');
  const tip = at(tipX, tipY, 0);
  path.setAttribute('d', `M${at(x, y, SHORTENED)}L${tip}M${at(tipX, tipY, -BARB, 0.45)}L${tip}L${at(tipX, tipY, -BARB, -0.45)}`);
  return path;
}

window.addEventListener('resize', draw);
