import { describe, expect, test } from 'vitest';
import type { CompareBody } from '../../src/logic/compare/answer';
import { layOut, type Layout } from '../../src/logic/mesh/layout';
import { gridOf } from '../../src/logic/mesh/page';
import { byClass, byState, byValue } from '../../src/logic/mesh/paint';
import { waitingOf } from '../../src/logic/mesh/waits';
import { classesOf } from '../../src/logic/ranks/classes';
import { nextHues, NO_HUES } from '../../src/logic/ranks/hues';
import type { Row } from '../../src/logic/ranks/rows';
import { row, running } from '../ranks/row';

/** dp × tp, the last dimension along with the rank. */
function meshed(dp: number, tp: number, more: (rank: number) => Partial<Row> = () => ({})): Row[] {
  return Array.from({ length: dp * tp }, (_, rank) => row(rank, { coords: { dp: Math.floor(rank / tp), tp: rank % tp }, ...more(rank) }));
}

function ranksOf({ lines }: Layout): [string, (number | undefined)[]][] {
  return lines.map(({ name, cells }) => [name, cells.map((one) => one?.rank)]);
}

const body = (values: CompareBody['values'], more: Partial<CompareBody> = {}): CompareBody => {
  return { values, statistics: null, outliers: '', errors: [], missing: '', ...more };
};

describe('where ranks lie', () => {
  test('the last dimension is along the columns, or the one that was chosen', () => {
    expect(ranksOf(layOut(meshed(2, 2), ''))).toEqual([['dp=0', [0, 1]], ['dp=1', [2, 3]]]);
    expect(ranksOf(layOut(meshed(2, 2), 'dp'))).toEqual([['tp=0', [0, 2]], ['tp=1', [1, 3]]]);
  });

  test('three dimensions are blocks of lines', () => {
    const rows = Array.from({ length: 8 }, (_, rank) => row(rank, { coords: { pp: rank >> 2, dp: (rank >> 1) & 1, tp: rank & 1 } }));
    const { lines, dimensions } = layOut(rows, 'tp');
    expect(dimensions).toEqual(['pp', 'dp', 'tp']);
    expect(lines.map(({ name, first }) => [name, first])).toEqual([
      ['pp=0 dp=0', true], ['pp=0 dp=1', false], ['pp=1 dp=0', true], ['pp=1 dp=1', false],
    ]); // prettier-ignore
  });

  test('a dimension that others make up is left out, and one of a single place', () => {
    const rows = meshed(2, 2).map((one) => ({ ...one, coords: { pp: 0, flat: one.rank, ...one.coords } }));
    expect(layOut(rows, '').dimensions).toEqual(['dp', 'tp']);
  });

  test('without a mesh, or one that does not tell ranks apart, they are in order', () => {
    const sharing = meshed(2, 2).map((one) => ({ ...one, coords: { dp: 0, tp: one.rank & 1 } }));
    for (const rows of [[0, 1, 2, 3].map((rank) => row(rank)), sharing]) {
      expect(layOut(rows, '').columns).toBe('');
      expect(ranksOf(layOut(rows, ''))[0]?.[0]).toBe('0-3');
    }
    expect(layOut(Array.from({ length: 512 }, (_, rank) => row(rank)), '').lines).toHaveLength(16);
  });

  test('each group has lines of its own, and a rank that is missing a hole', () => {
    const rows = [...meshed(2, 2).slice(1), row(0, { group: 'eval' })];
    expect(ranksOf(layOut(rows, ''))).toEqual([
      ['job dp=0', [undefined, 1]], ['job dp=1', [2, 3]], ['eval 0', [0, undefined]],
    ]); // prettier-ignore
  });
});

describe('colours', () => {
  const rows = [...meshed(2, 2).slice(0, 3), running(3, { coords: { dp: 1, tp: 1 } })];

  test('state and class have a sign or letter, too, and a legend that counts', () => {
    expect(byState(rows).legend.map(({ mark, spoken }) => `${mark} ${spoken}`)).toEqual(['▶ running · 1 rank', '■ stopped · 3 ranks']);
    const hues = nextHues(NO_HUES, classesOf(rows), []);
    const painting = byClass(rows, hues);
    expect(rows.map((one) => painting.lookOf(one).tint)).toEqual(['hue1', 'hue1', 'hue1', 'running']);
    expect(painting.legend.map(({ mark, spoken }) => `${mark} ${spoken}`)).toEqual(['▶ running · 1 rank', 'A train.py:41 · 3 ranks']);
  });

  test('numbers are scaled without the outliers; what failed says so', () => {
    const values = [['0', '1', false], ['1', '2', false], ['2', '340268', true]] as const;
    const made = values.map(([ranks, value, outlier]) => ({ ranks, value, outlier }));
    const painting = byValue(body(made, { errors: [{ ranks: '3', message: 'NameError' }] }));
    expect(rows.map((one) => painting.lookOf(one).tint)).toEqual(['level0', 'level5', 'far', 'failed']);
    expect(painting.legend.map(({ spoken }) => spoken).slice(0, 2)).toEqual(['1', '2']);
    expect(byValue(undefined).lookOf(row(0)).tint).toBe('plain');
  });

  test('values that are no numbers have a hue each', () => {
    const painting = byValue(body([{ ranks: '0-1', value: "'m'", outlier: false }, { ranks: '2-3', value: "'mm'", outlier: false }]));
    expect(rows.map((one) => painting.lookOf(one).tint)).toEqual(['hue1', 'hue1', 'hue2', 'hue2']);
  });
});

describe('who waits', () => {
  const layout = layOut(meshed(2, 2), '');

  test('an arrow from each rank, but not from one that has moved since', () => {
    const waits = [{ ranks: '0-1,3', for: '2' }];
    const { arrows, sentences, awaited } = waitingOf(waits, [{ group: 'job', rank: 1 }], 'job', layout);
    expect(arrows).toEqual([['job/0', 'job/2'], ['job/3', 'job/2']]);
    expect(sentences).toEqual(['ranks 0,3 wait for rank 2']);
    expect([...awaited]).toEqual(['job/2']);
  });

  test('of very many the shortest are drawn, and it is said', () => {
    const many = layOut(meshed(64, 8), '');
    const { arrows, sentences } = waitingOf([{ ranks: '1-511', for: '0' }], [], 'job', many);
    expect(arrows).toHaveLength(24);
    expect(arrows[0]).toEqual(['job/1', 'job/0']);
    expect(sentences).toEqual(['ranks 1-511 wait for rank 0', 'the shortest 24 of 511 arrows are drawn']);
  });
});

test('a cell says in words what its colour says, and nothing of a rank is markup', () => {
  const rows = meshed(2, 2, (rank) => ({ path: `/src/<${rank}>.py` }));
  const waiting = { ...waitingOf([{ ranks: '0', for: '2' }], [], 'job', layOut(rows, '')), heading: '14:03:05: rank 2 <sleeps>' };
  const shown = gridOf({ layout: layOut(rows, ''), painting: byState(rows), waiting });
  expect(shown).toContain('aria-label="rank 0, stopped, &lt;0&gt;.py:41, waits for rank 2"');
  expect(shown).toContain('class="cell stopped waits"');
  expect(shown).toContain('class="cell stopped awaited"');
  expect(shown).toContain('14:03:05: rank 2 &lt;sleeps&gt;');
  expect(shown).not.toContain('<0>');
});
