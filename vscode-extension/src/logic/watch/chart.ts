/** A sparkline as SVG, scaled to what is no outlier; outliers are clipped and labelled. Pure. */

import { short } from '../compare/answer';
import { escaped } from '../compare/drawing';
import type { Point } from './row';

const WIDTH = 180;
const HEIGHT = 30;
const TOP = 10;
const COLUMNS = 60;
const MAX_LABELS = 2;

export interface Chart {
  readonly points: readonly Point[];
  /** What the points are: `Values of 512 ranks`. */
  readonly about: string;
  /** Whether `far` says that the number itself lies far off: then it does not count for the scale. */
  readonly clips: boolean;
}

/** An empty text where there is nothing to draw. */
export function chartSvg({ points, about, clips }: Chart): string {
  const finite = points.filter(({ number }) => Number.isFinite(number));
  const usual = clips ? finite.filter(({ far }) => !far) : finite;
  const scaled = usual.length > 0 ? usual : finite;
  if (points.length < 2 || scaled.length === 0) return '';
  const low = scaled.reduce((one, { number }) => Math.min(one, number), Infinity);
  const high = scaled.reduce((one, { number }) => Math.max(one, number), -Infinity);
  const x = (index: number): number => 3 + (index * (WIDTH - 6)) / (points.length - 1);
  const y = (number: number): number => {
    const share = high === low ? 0.5 : Math.min(1, Math.max(0, (number - low) / (high - low)));
    return HEIGHT - 3 - share * (HEIGHT - TOP - 3);
  };
  const line = clips && points.length > 2 * COLUMNS ? bars(points, x, y) : path(points, x, y, clips);
  const marks = points.map((point, index) => mark(point, x(index), y(point.number), clips)).join('');
  const labels = clips ? labelsOf(points, x) : '';
  const words = `${about}, from ${short(low)} to ${short(high)}${inWords(points, clips)}`;
  return (
    `<svg role="img" aria-label="${escaped(words)}" viewBox="0 0 ${WIDTH} ${HEIGHT}"><title>${escaped(words)}</title>` +
    `${line}${marks}${labels}</svg>`
  );
}

function inWords(points: readonly Point[], clips: boolean): string {
  const far = points.filter(({ far }) => far);
  if (far.length === 0) return '';
  if (!clips) return `; with outliers ${far.length === 1 ? 'once' : `${far.length} times`}`;
  const told = far.slice(0, MAX_LABELS).map(({ name, number }) => `${name}: ${short(number)}`);
  return `; outliers ${told.join(', ')}${far.length > MAX_LABELS ? ` and ${far.length - MAX_LABELS} more` : ''}`;
}

type Place = (number: number) => number;

function path(points: readonly Point[], x: Place, y: Place, clips: boolean): string {
  let drawn = '';
  let joined = false;
  points.forEach(({ number, far }, index) => {
    const hidden = !Number.isFinite(number) || (clips && far);
    if (!hidden) drawn += `${joined ? 'L' : 'M'}${x(index).toFixed(1)} ${y(number).toFixed(1)}`;
    joined = !hidden;
  });
  return `<path class="line" d="${drawn}"/>`;
}

/** Of very many ranks: from the lowest to the highest in each column. */
function bars(points: readonly Point[], x: Place, y: Place): string {
  let drawn = '';
  const size = Math.ceil(points.length / COLUMNS);
  for (let start = 0; start < points.length; start += size) {
    const part = points.slice(start, start + size).filter(({ number, far }) => Number.isFinite(number) && !far);
    if (part.length === 0) continue;
    const heights = part.map(({ number }) => y(number));
    const at = x(Math.min(start + size / 2, points.length - 1)).toFixed(1);
    drawn += `M${at} ${(Math.max(...heights) + 1).toFixed(1)}V${(Math.min(...heights) - 1).toFixed(1)}`;
  }
  return `<path class="line" d="${drawn}"/>`;
}

/** Only what stands out has a mark: an outlier at the upper edge, and what is no finite number. */
function mark({ number, far }: Point, x: number, y: number, clips: boolean): string {
  const at = x.toFixed(1);
  if (!Number.isFinite(number)) return `<path class="far" d="M${(x - 2).toFixed(1)} 8l4 4m0 -4l-4 4"/>`;
  if (!far) return '';
  const height = clips ? TOP - 1 : y;
  return `<path class="far" d="M${at} ${(height - 3).toFixed(1)}l3 5h-6z"/>`;
}

/** At the left or the right of its mark, wherever there is room. */
function labelsOf(points: readonly Point[], x: Place): string {
  const far = points.map((point, index) => ({ point, at: x(index) })).filter(({ point }) => point.far);
  if (far.length > MAX_LABELS) return '';
  return far
    .map(({ point, at }) => {
      const right = at < WIDTH / 2;
      return `<text x="${(at + (right ? 5 : -5)).toFixed(1)}" y="9"${right ? '' : ' text-anchor="end"'}>${escaped(short(point.number))}</text>`;
    })
    .join('');
}
