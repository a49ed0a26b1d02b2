/// <reference lib="dom" />
/** The script of the array viewer's page: draws the cells it is sent, tells what the user asks for. */

import './array.css';
import { Block, cellAt, indexIn, neighbour, queryOf, scaleOf, shareOf, type ArrayBody, type Cell, type FromPage, type Query, type Scale, type Show, type ToPage } from '../logic/array/answer';
import { aboutOf, axesOf, histogramSvg, notesOf, tableOf, wordsOf } from '../logic/array/page';
import { short } from '../logic/compare/answer';
import { closest, connect, element, tellProblem } from './shared/page';

const host = connect<FromPage, ToPage, Query>(take);

const expression = element('expression') as HTMLInputElement;
const ranks = element('ranks') as HTMLInputElement;
const show = element('show') as HTMLSelectElement;
const mask = element('mask') as HTMLInputElement;
const map = element('map') as HTMLCanvasElement;
const axes = element('axes');
const MOST = 640; // px
const LEAST = 120;
const RANK_ROW = 18;

let query: Query = queryOf('');
let body: ArrayBody | undefined;
let blocks: readonly Block[] = [];
let cursor: Cell | undefined;

function take(data: ToPage): void {
  ({ query } = data);
  host.setState(query);
  if (document.activeElement !== expression) expression.value = query.expression;
  if (document.activeElement !== ranks) ranks.value = query.ranks;
  element('shown').classList.toggle('old', data.type === 'problem');
  tellProblem(data.type === 'problem' ? data.message : undefined);
  if (data.type === 'show') receive(data.body);
}

/** What is made of HTML here was escaped where it was made, and no script in it would run. */
function receive(told: ArrayBody): void {
  body = told;
  blocks = told.parts.map((part) => new Block(part));
  element('shown').hidden = false;
  element('about').textContent = aboutOf(told);
  element('notes').innerHTML = notesOf(told);
  if (!(document.activeElement instanceof HTMLInputElement && axes.contains(document.activeElement))) axes.innerHTML = axesOf(told, query);
  element('histogram').innerHTML = histogramSvg(told);
  element('result').innerHTML = blocks.length ? tableOf(blocks, told) : '';
  cursor = cursor && cellAt(blocks, cursor.row, cursor.column);
  draw();
}

type Colour = readonly [number, number, number];

/** A colour of the theme as numbers. */
function colour(name: string): Colour {
  const one = document.createElement('canvas').getContext('2d');
  if (!one) return [0, 0, 0];
  one.fillStyle = getComputedStyle(document.body).getPropertyValue(`--vscode-${name}`).trim() || '#888';
  one.fillRect(0, 0, 1, 1);
  const [red = 0, green = 0, blue = 0] = one.getImageData(0, 0, 1, 1).data;
  return [red, green, blue];
}

function between(stops: readonly [Colour, Colour, Colour], share: number): Colour {
  const [from, to] = share < 0.5 ? [stops[0], stops[1]] : [stops[1], stops[2]];
  const by = share < 0.5 ? share * 2 : share * 2 - 1;
  const mix = (at: 0 | 1 | 2): number => from[at] + (to[at] - from[at]) * by;
  return [mix(0), mix(1), mix(2)];
}

const kind = (): Show => show.value as Show;

function draw(): void {
  if (!body) return;
  const [high, wide] = body.extent;
  const width = Math.max(LEAST, Math.min(MOST, document.body.clientWidth - 40));
  const least = body.rows === '$rank' ? Math.min(MOST, high * RANK_ROW) : LEAST;
  const height = Math.round(Math.max(least, Math.min(MOST, (width * high) / wide)));
  const ratio = window.devicePixelRatio || 1;
  Object.assign(map, { width: width * ratio, height: height * ratio });
  Object.assign(map.style, { width: `${width}px`, height: `${height}px` });
  const numbers = blocks.flatMap((block) => Array.from(block[kind()]));
  const scale = scaleOf(numbers);
  const context = map.getContext('2d');
  if (!context) return;
  context.imageSmoothingEnabled = false;
  const counts = { beyond: 0, nan: 0 };
  for (const block of blocks) paint(context, block, scale, counts);
  legend(scale, counts);
  map.setAttribute('aria-label', `${kind()} of ${query.expression}, ${high} by ${wide}. Arrow keys go from cell to cell.`);
  point();
}

function paint(context: CanvasRenderingContext2D, block: Block, scale: Scale, counts: { beyond: number; nan: number }): void {
  const [rows, columns] = block.part.grid;
  const image = new ImageData(columns, rows);
  const ground = colour('editor-background');
  const ends: readonly [Colour, Colour, Colour] = scale.diverges
    ? [colour('charts-blue'), ground, colour('charts-yellow')]
    : [ground, colour('charts-blue'), colour('foreground')];
  const marks = { nan: colour('charts-purple'), beyond: colour('charts-red') };
  const masked = mask.checked && kind() !== 'nan';
  block[kind()].forEach((number, index) => {
    const share = masked && block.nan[index] ? 'nan' : shareOf(number, scale);
    if (share === undefined) return;
    if (typeof share === 'string') counts[share] += 1;
    image.data.set([...(typeof share === 'string' ? marks[share] : between(ends, share)), 255], index * 4);
  });
  const canvas = Object.assign(document.createElement('canvas'), { width: columns, height: rows });
  canvas.getContext('2d')?.putImageData(image, 0, 0);
  const [x, y, width, height] = place(block.part);
  context.drawImage(canvas, x, y, width, height);
  context.strokeStyle = `rgb(${colour('foreground').join()})`;
  if (blocks.length > 1 && body?.rows !== '$rank') context.strokeRect(x, y, width, height);
}

/** Where rows and columns lie in the picture. */
function place({ row, column, height, width }: Pick<Cell, 'row' | 'column' | 'height' | 'width'>): [number, number, number, number] {
  const [high, wide] = body?.extent ?? [1, 1];
  const [down, across] = [map.height / high, map.width / wide];
  return [column * across, row * down, width * across, height * down];
}

function legend({ low, high, diverges }: Scale, { beyond, nan }: { beyond: number; nan: number }): void {
  const end = Math.max(-low, high);
  const [first, last] = diverges ? [-end, end] : [low, high];
  const keys = [...(beyond ? [`<span class="key beyond"></span>beyond: ${beyond}`] : []), ...(nan ? [`<span class="key nan"></span>with NaN: ${nan}`] : [])];
  element('legend').innerHTML = `${short(first)}<span class="ramp ${diverges ? 'diverging' : ''}"></span>${short(last)} ${keys.join(' ')}`;
}

const ring = document.createElement('div');
ring.id = 'ring';
map.after(ring);

/** Shows which cell is meant, and says what it has. */
function point(): void {
  ring.hidden = cursor === undefined;
  element('cell').textContent = cursor && body ? wordsOf(cursor, body) : '\u00a0';
  if (!cursor) return;
  const ratio = window.devicePixelRatio || 1;
  const [x, y, width, height] = place(cursor).map((one) => one / ratio) as [number, number, number, number];
  const at = { left: map.offsetLeft + x - 2, top: map.offsetTop + y - 2, width: Math.max(4, width), height: Math.max(4, height) };
  for (const [name, value] of Object.entries(at)) ring.style.setProperty(name, `${value}px`);
}

function cellUnder({ offsetX, offsetY }: MouseEvent): Cell | undefined {
  const [high, wide] = body?.extent ?? [1, 1];
  return cellAt(blocks, Math.floor((offsetY / map.clientHeight) * high), Math.floor((offsetX / map.clientWidth) * wide));
}

map.addEventListener('mousemove', (event) => {
  cursor = cellUnder(event) ?? cursor;
  point();
});
map.addEventListener('dblclick', () => {
  if (cursor) host.postMessage({ type: 'go', ranks: cursor.ranks });
});
map.addEventListener('focus', () => {
  cursor ??= cellAt(blocks, blocks[0]?.part.row ?? 0, blocks[0]?.part.column ?? 0);
  point();
});
map.addEventListener('keydown', (event) => {
  if (!body || !cursor) return;
  if (event.key === 'Enter') host.postMessage({ type: 'go', ranks: cursor.ranks });
  const next = neighbour(blocks, cursor, event.key, body.extent);
  if (!next) return;
  event.preventDefault();
  cursor = next;
  point();
});

function ask(changed: Partial<Query>): void {
  host.postMessage({ type: 'ask', query: { ...query, ...changed } });
}

element('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  ask(queryOf(expression.value, ranks.value.trim()));
});
axes.addEventListener('input', ({ target }) => {
  if (!(target instanceof HTMLInputElement)) return;
  const [axis, value] = [Number(target.dataset['axis']), Number(target.value)];
  const words = value < 0 ? 'all' : `${value}`;
  target.setAttribute('aria-valuetext', words);
  target.parentElement?.querySelectorAll('output').forEach((output) => (output.textContent = words));
  ask({ at: body?.shape.map((_, other) => (other === axis ? value : indexIn(query, other))) ?? [] });
});
axes.addEventListener('change', ({ target }) => {
  if (!(target instanceof HTMLSelectElement) || !body) return;
  const [rows, columns] = ['rows', 'columns'].map((id) => (element(id) as HTMLSelectElement).value);
  if (rows !== columns) ask({ rows: axisOf(rows), columns: Number(columns), at: [] });
  else ask({ rows: axisOf(target.id === 'rows' ? rows : `${body.columns}`), columns: target.id === 'rows' ? Number(body.rows) || 0 : Number(columns), at: [] }); // swapped
});

function axisOf(chosen = ''): Query['rows'] {
  if (chosen === '$rank') return chosen;
  return chosen === '' ? null : Number(chosen);
}

for (const one of [show, mask]) one.addEventListener('change', draw);
element('result').addEventListener('click', ({ target }) => {
  const link = closest(target, '.go');
  if (!link) return;
  cursor = cellAt(blocks, Number(link.dataset['row']), Number(link.dataset['column']));
  map.focus();
  point();
});
new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ['class'] }); // another theme
window.addEventListener('resize', draw);
