import { describe, expect, test } from 'vitest';
import { Block, cellAt, neighbour, oddest, queryOf, scaleOf, shareOf, type ArrayBody, type Part } from '../../src/logic/array/answer';
import { aboutOf, axesOf, histogramOf, histogramSvg, notesOf, tableOf, wordsOf } from '../../src/logic/array/page';

function packed(...numbers: number[]): string {
  return Buffer.from(Float32Array.from(numbers).buffer).toString('base64');
}

function partOf(grid: readonly [number, number], numbers: number[], more: Partial<Part> = {}): Part {
  return {
    ranks: '0', row: 0, column: 0, height: grid[0], width: grid[1], grid, mean: packed(...numbers), max: '', nan: '',
    statistics: { min: 0, max: 4, mean: 2, nan: 0, inf: 0, count: numbers.length }, histogram: [0, 1, 3, 0], ends: [0, 4], complete: true, ...more,
  }; // prettier-ignore
}

function bodyOf(parts: Part[], more: Partial<ArrayBody> = {}): ArrayBody {
  return {
    name: 'Tensor', dtype: 'float32', device: 'cpu', placements: '', shape: [2, 3], rows: 0, columns: 1, extent: [2, 3], parts,
    shapes: [], errors: [], missing: '', ...more,
  }; // prettier-ignore
}

const SMALL = partOf([2, 3], [0, 1, 2, 3, 4, 5]);
const query = queryOf('w');

describe('what is typed', () => {
  test.each([
    ['w', { expression: 'w', rows: null, columns: null, at: [] }],
    ['w[3]', { expression: 'w[3]', rows: null, columns: null, at: [] }],
    ['w[$i, 3, $j]', { expression: 'w', rows: 0, columns: 2, at: [0, 3, 0] }],
    ['m["a"].w[:, $j, $i]', { expression: 'm["a"].w', rows: 2, columns: 1, at: [-1, 0, 0] }],
    ['w[$rank, :, $j]', { expression: 'w', rows: '$rank', columns: 1, at: [-1, 0] }],
    ['w[$i, $rank]', { expression: 'w', rows: '$rank', columns: 0, at: [0] }],
  ])('%s', (text, wanted) => {
    expect(queryOf(text, '0-3')).toEqual({ ranks: '0-3', ...wanted });
  });
});

describe('cells', () => {
  const wide = partOf([2, 2], [1, 2, 3, 4], { height: 3, width: 5, nan: packed(0, 6, 0, 0), max: packed(9, NaN, -20, 4) });

  test('the last ones of a part are smaller', () => {
    const block = new Block(wide);
    expect(block.cell(3)).toEqual({ ranks: '0', row: 2, column: 3, height: 1, width: 2, max: 4, mean: 4, nan: 0 });
    expect(block.indexAt(2, 4)).toBe(3);
    expect(block.indexAt(3, 4)).toBeUndefined();
    expect(oddest([block]).map(({ row, column }) => [row, column])).toEqual([[0, 3], [2, 0], [0, 0], [2, 3]]);
  });

  test('keys lead from part to part, and not over the edge', () => {
    const blocks = [new Block(SMALL), new Block({ ...SMALL, ranks: '1', column: 3 })];
    const start = cellAt(blocks, 1, 2);
    if (!start) throw new Error('no cell');
    const to = (key: string): unknown => {
      const { ranks, row, column } = neighbour(blocks, start, key, [2, 6]) ?? {};
      return [ranks, row, column];
    };
    expect(to('ArrowRight')).toEqual(['1', 1, 3]);
    expect(to('ArrowUp')).toEqual(['0', 0, 2]);
    expect(to('PageDown')).toEqual(['0', 1, 2]);
    expect(to('Home')).toEqual(['0', 1, 0]);
    expect(to('End')).toEqual(['1', 1, 5]);
    expect(neighbour(blocks, start, 'x', [2, 6])).toBeUndefined();
  });
});

describe('colours', () => {
  test('one number far off is beyond, and the others keep theirs', () => {
    const numbers = [...Array.from({ length: 1000 }, (_, index) => index / 1000), 340268, NaN, Infinity];
    const scale = scaleOf(numbers);
    expect(scale.high).toBeLessThan(2);
    expect(shareOf(340268, scale)).toBe('beyond');
    expect(shareOf(Infinity, scale)).toBe('beyond');
    expect(shareOf(NaN, scale)).toBeUndefined();
    expect(shareOf(scale.high, scale)).toBe(1);
  });

  test('nought is in the middle where there are both signs; equal numbers are', () => {
    expect(shareOf(0, scaleOf([-1, 0, 4]))).toBe(0.5);
    expect(shareOf(-1, scaleOf([-1, 0, 4]))).toBe(0.375);
    expect(shareOf(7, scaleOf([7, 7]))).toBe(0.5);
    expect(shareOf(1, scaleOf([]))).toBe('beyond');
  });
});

describe('the page', () => {
  test('says what it is', () => {
    expect(aboutOf(bodyOf([SMALL]))).toBe('Tensor float32 cpu [2, 3] · min 0 · max 4 · mean 2 · NaN 0 · inf 0');
    const nothing = partOf([1, 1], [NaN], { statistics: { min: null, max: null, mean: null, nan: 1, inf: 0, count: 1 } });
    expect(aboutOf(bodyOf([nothing]))).toBe('Tensor float32 cpu [2, 3] · NaN 1 · inf 0');
  });

  test('escapes what ranks say', () => {
    const evil = '<img src=x onerror=alert(1)>';
    const hostile = bodyOf([{ ...SMALL, ranks: evil }], { errors: [{ ranks: '1', message: evil }], missing: evil });
    const html = notesOf(hostile) + tableOf([new Block({ ...SMALL, ranks: evil })], hostile) + axesOf(hostile, query) + histogramSvg(hostile);
    expect(html).not.toContain('<img');
    expect(html).toContain('&lt;img');
  });

  test('notes what is not as one might think', () => {
    const late = bodyOf([{ ...SMALL, complete: false }], { placements: 'Partial(sum)', shapes: [{ ranks: '0', message: 'a' }, { ranks: '1', message: 'b' }], missing: '3' });
    expect(notesOf(late).match(/<li>/g)).toHaveLength(5);
    expect(notesOf(bodyOf([SMALL], { shapes: [{ ranks: '0-3', message: 'a' }] }))).toBe('');
  });

  test('has a slider for each other dimension', () => {
    const html = axesOf(bodyOf([SMALL], { shape: [2, 4, 3], columns: 2 }), { ...query, at: [0, 1, 0] });
    expect(html.match(/type="range"/g)).toHaveLength(1);
    expect(html).toContain('data-axis="1" min="-1" max="3" value="1"');
    expect(axesOf(bodyOf([SMALL], { rows: '$rank' }), { ...query, rows: '$rank' })).toContain('<output>all</output>');
    expect(axesOf(bodyOf([SMALL], { shape: [5], rows: null, columns: 0 }), query)).toContain('one row');
  });

  test('says a cell in words', () => {
    const cell = new Block(SMALL).cell(4);
    expect(wordsOf(cell, bodyOf([SMALL]))).toBe('rows 1 · columns 1 · 4');
    expect(wordsOf({ ...cell, max: 9, nan: 2, width: 4 }, bodyOf([SMALL], { rows: '$rank' }))).toBe('{0} · columns 1–4 · max 9 · mean 4 · NaN 2');
  });

  test('parts have one histogram', () => {
    const other = { ...SMALL, statistics: { ...SMALL.statistics, min: 4, max: 8 }, ends: [4, 8] };
    const { low, high, counts } = histogramOf(bodyOf([SMALL, other]));
    expect([low, high, counts.reduce((sum, one) => sum + one, 0)]).toEqual([0, 8, 8]);
    expect(histogramSvg(bodyOf([{ ...SMALL, histogram: [], ends: [] }]))).toBe('');
  });

  test('what is far off is counted at the edge of the histogram, and leaves the others room', () => {
    const far = partOf([1, 1], [1], { statistics: { ...SMALL.statistics, max: 340268 }, histogram: [0, 1, 3, 2], ends: [0, 4] });
    const inside = { ...SMALL, ends: [-4, 4] };
    const { low, high, counts } = histogramOf(bodyOf([far, inside]));
    expect([low, high, counts[0], counts.at(-1)]).toEqual([-4, 4, 0, 2]);
    const svg = histogramSvg(bodyOf([far]));
    expect(svg).toContain('2 to 340268</text>');
    expect(svg).toContain('<title>far above, to 340268: 2</title>');
    expect(svg).not.toContain('far below');
  });
});
