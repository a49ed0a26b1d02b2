/** The histogram, and the values rank by rank, as SVG. Pure. */

import { numberOf, short, type Group, type Histogram } from './answer';
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

interface Point {
  readonly name: string;
  readonly number: number;
  readonly far: boolean;
}

function pointsOf(groups: readonly Group[]): Point[] {
  const found = groups.flatMap(({ kind, ids, value, outlier }) => {
    const number = kind === 'value' ? numberOf(value) : undefined;
    if (number === undefined) return [];
    return ids.map((id) => ({ id, number, far: outlier }));
  });
  found.sort(({ id: one }, { id: other }) =>
    one.group === other.group ? one.rank - other.rank : one.group < other.group ? -1 : 1,
  );
  return found.map(({ id, number, far }) => ({
    name: `rank ${id.rank}${id.group && ` @${id.group}`}`,
    number,
    far,
  }));
}

/** From numbers to the drawing, and the words for its ends. */
class Scale {
  readonly low: number;
  readonly high: number;

  constructor(
    private readonly length: number,
    finite: readonly number[],
  ) {
    this.low = finite.reduce((one, other) => Math.min(one, other));
    this.high = finite.reduce((one, other) => Math.max(one, other));
  }

  x(index: number): string {
    return (6 + (index * (WIDTH - 12)) / (this.length - 1)).toFixed(1);
  }

  /** All equal numbers lie in the middle. */
  y(number: number): string {
    const range = this.high - this.low;
    const share = range === 0 ? 0.5 : (number - this.low) / range;
    return (BASE - 6 - share * (BASE - 14)).toFixed(1);
  }
}

/** A line through the values, rank by rank; NaN, infinite and outliers stand out by form too. */
export function sparklineSvg(groups: readonly Group[]): string {
  const points = pointsOf(groups);
  const finite = points.map(({ number }) => number).filter(Number.isFinite);
  const [first, last] = [points[0], points.at(-1)];
  if (finite.length === 0 || first === undefined || last === undefined || first === last) return '';
  const scale = new Scale(points.length, finite);
  const marks = points.map((point, index) => markSvg(point, scale.x(index), scale));
  const label = `Values of ${countedRanks(points.length)}, one after another, from ${short(scale.low)} to ${short(scale.high)}`;
  return picture(label, linesSvg(points, scale) + marks.join('') + ends(first.name, last.name));
}

/** The line is broken where a value is no finite number. */
function linesSvg(points: readonly Point[], scale: Scale): string {
  let path = '';
  points.forEach(({ number }, index) => {
    if (!Number.isFinite(number)) return;
    const before = points[index - 1];
    const joined = before !== undefined && Number.isFinite(before.number);
    path += `${joined ? 'L' : 'M'}${scale.x(index)} ${scale.y(number)}`;
  });
  return `<path class="line" d="${path}"/>`;
}

function markSvg(point: Point, x: string, scale: Scale): string {
  const told = `<title>${escaped(point.name)}: ${short(point.number)}${point.far ? ', outlier' : ''}</title>`;
  if (!Number.isFinite(point.number)) {
    return `<text class="odd" x="${x}" y="${BASE}" text-anchor="middle">✕${told}</text>`;
  }
  const size = point.far ? 4 : 2;
  return `<circle class="dot${point.far ? ' far' : ''}" cx="${x}" cy="${scale.y(point.number)}" r="${size}">${told}</circle>`;
}
