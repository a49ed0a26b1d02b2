/** The histogram, and the values rank by rank, as SVG. Pure. */

import { numbersOf, short, type Group, type Histogram, type Numbered } from './answer';
import { countedRanks } from '../ranks/sets';

const WIDTH = 320;
const HEIGHT = 72;
const BASE = 56;

export function escaped(text: string): string {
  const names: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, (char) => names[char] ?? char);
}

function picture(label: string, inside: string): string {
  return `<svg role="img" aria-label="${escaped(label)}" viewBox="0 0 ${WIDTH} ${HEIGHT}">${inside}</svg>`;
}

function ends(low: string, high: string): string {
  return (
    `<text x="0" y="${HEIGHT - 2}">${escaped(low)}</text>` +
    `<text x="${WIDTH}" y="${HEIGHT - 2}" text-anchor="end">${escaped(high)}</text>`
  );
}

/** Bars of how many ranks' numbers lie where; `outliers` are the numbers of those. */
export function histogramSvg(histogram: Histogram, outliers: readonly number[]): string {
  const { counts, edges } = histogram;
  const most = Math.max(1, ...counts);
  const step = WIDTH / counts.length;
  const bars = counts.map((count, index) => {
    const [low = 0, high = low] = [edges[index], edges[index + 1]];
    const last = index === counts.length - 1;
    const far = outliers.some((one) => low <= one && (one < high || last));
    const height = count === 0 ? 0 : Math.max(3, (count / most) * (BASE - 4));
    const told = `${short(low)} to ${short(high)}: ${countedRanks(count)}${far ? ', outlier' : ''}`;
    return (
      `<rect class="bar${far ? ' far' : ''}" x="${(index * step + 1).toFixed(1)}" y="${(BASE - height).toFixed(1)}" ` +
      `width="${(step - 2).toFixed(1)}" height="${height.toFixed(1)}"><title>${told}</title></rect>`
    );
  });
  const label = `Histogram: ${counts.reduce((sum, count) => sum + count, 0)} numbers from ${short(edges[0] ?? 0)} to ${short(edges.at(-1) ?? 0)}`;
  return picture(label, bars.join('') + ends(short(edges[0] ?? 0), short(edges.at(-1) ?? 0)));
}

function nameOf({ id }: Numbered): string {
  return `rank ${id.rank}${id.group && ` @${id.group}`}`;
}

/** A line through the values, rank by rank; NaN, infinite and outliers stand out by form too. */
export function sparklineSvg(groups: readonly Group[]): string {
  const points = numbersOf(groups);
  const finite = points.map(({ number }) => number).filter(Number.isFinite);
  const [first, last] = [points[0], points.at(-1)];
  if (finite.length === 0 || first === undefined || last === undefined || first === last) return '';
  const low = finite.reduce((one, other) => Math.min(one, other));
  const high = finite.reduce((one, other) => Math.max(one, other));
  const placed = points.map((point, index): Placed => {
    const share = high === low ? 0.5 : (point.number - low) / (high - low); // all equal numbers lie in the middle
    const x = 6 + (index * (WIDTH - 12)) / (points.length - 1);
    return { ...point, x: x.toFixed(1), y: (BASE - 6 - share * (BASE - 14)).toFixed(1) };
  });
  const label = `Values of ${countedRanks(points.length)}, one after another, from ${short(low)} to ${short(high)}`;
  return picture(label, linesSvg(placed) + placed.map(markSvg).join('') + ends(nameOf(first), nameOf(last)));
}

interface Placed extends Numbered {
  readonly x: string;
  readonly y: string;
}

/** The line is broken where a value is no finite number. */
function linesSvg(points: readonly Placed[]): string {
  let path = '';
  points.forEach(({ number, x, y }, index) => {
    if (Number.isFinite(number)) path += `${Number.isFinite(points[index - 1]?.number) ? 'L' : 'M'}${x} ${y}`;
  });
  return `<path class="line" d="${path}"/>`;
}

function markSvg(point: Placed): string {
  const { x, y } = point;
  const told = `<title>${escaped(nameOf(point))}: ${short(point.number)}${point.far ? ', outlier' : ''}</title>`;
  if (!Number.isFinite(point.number)) {
    return `<text class="odd" x="${x}" y="${BASE}" text-anchor="middle">✕${told}</text>`;
  }
  const size = point.far ? 4 : 2;
  return `<circle class="dot${point.far ? ' far' : ''}" cx="${x}" cy="${y}" r="${size}">${told}</circle>`;
}
