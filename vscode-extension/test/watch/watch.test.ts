import { describe, expect, test } from 'vitest';
import { csvOfAll } from '../../src/logic/watch/messages';
import { tableOf } from '../../src/logic/watch/page';
import { focusValue, hasChanged, historyOf, inShort, pointsOf, valuesOf, type Watched, type WatchBody } from '../../src/logic/watch/row';

function bodyOf(values: readonly (readonly [string, string, boolean?])[], more: Partial<WatchBody> = {}): WatchBody {
  const outliers = values.filter(([, , outlier]) => outlier).map(([ranks]) => ranks).join(',');
  const made = values.map(([ranks, value, outlier = false]) => ({ ranks, value, outlier }));
  return { values: made, statistics: null, outliers, errors: [], missing: '', ...more };
}

const ids = (...ranks: number[]): { group: string; rank: number }[] => ranks.map((rank) => ({ group: '', rank }));
const watched = (expression: string, body: WatchBody | null, more: Partial<Watched> = {}): Watched => ({
  expression,
  body,
  problem: '',
  changed: false,
  ...more,
});

/** 512 losses that all differ a little, rank 300's by far. */
const MANY = bodyOf([
  ...Array.from({ length: 512 }, (_, rank): [string, string] => [`${rank}`, `${1 + rank / 1000}`]).filter((_, rank) => rank !== 300),
  ['300', '340268', true],
]);

describe('sets in short', () => {
  test.each([
    [ids(3), 512, '3'],
    [ids(0, 1, 2, 7), 512, '0-2,7'],
    [Array.from({ length: 8 }, (_, index) => ({ group: '', rank: index * 64 })), 512, '0::64'],
    [ids(0, 64, 128), 512, '0:129:64'],
    [Array.from({ length: 40 }, (_, index) => ({ group: '', rank: index * index })), 2000, '40 ranks'],
    [[{ group: 'trainer', rank: 0 }], 4, 'trainer:0'],
  ])('%j of %i', (given, all, text) => {
    expect(inShort(given, all)).toBe(text);
  });
});

describe('values', () => {
  test('what is no outlier is one row at 512 ranks', () => {
    const shown = valuesOf(MANY);
    expect(shown.map(({ set, value }) => [set, value])).toEqual([
      ['300', '340268'],
      ['all others (511)', '1 … 1.511'],
    ]);
  });

  test('few values are told one by one, equal ones by all', () => {
    expect(valuesOf(bodyOf([['0-3', '5']])).map(({ set }) => set)).toEqual(['all (4)']);
    expect(valuesOf(bodyOf([['0-1', '5'], ['2', '6']])).map(({ set }) => set)).toEqual(['0-1', '2']);
    const failed = bodyOf([['0-1', '5']], { missing: '2', errors: [{ ranks: '3', message: 'NameError' }] });
    expect(valuesOf(failed).map(({ set, kind }) => [set, kind])).toEqual([['all others (2)', 'value'], ['3', 'error'], ['2', 'missing']]);
  });

  test('numbers are in short, unless they would look alike', () => {
    const [one, other] = ['0.09038551498866008', '340268.32927038794'];
    expect(valuesOf(bodyOf([['0', one], ['1', other]])).map(({ value }) => value)).toEqual(['0.0903855', '340268']);
    const alike = ['0.123456789', '0.123456781'] as const;
    expect(valuesOf(bodyOf([['0', alike[0]], ['1', alike[1]]])).map(({ value }) => value)).toEqual(alike);
  });

  test('very many outliers are counted', () => {
    const many = bodyOf([...Array.from({ length: 12 }, (_, rank): [string, string, boolean] => [`${rank}`, `${rank}e9`, true]), ['12-99', '1']]);
    expect(valuesOf(many).map(({ set }) => set).at(-2)).toBe('4 more outliers');
    expect(valuesOf(many).map(({ set }) => set).at(-1)).toBe('all others (88)');
  });

  test('of the rank in focus, and whether anything has changed', () => {
    expect(focusValue(MANY, { group: 'job', rank: 300 })).toBe('340268');
    expect(focusValue(MANY, undefined)).toBeUndefined();
    expect(hasChanged(null, MANY)).toBe(false);
    expect(hasChanged(MANY, { ...MANY })).toBe(false);
    expect(hasChanged(bodyOf([['0', '1']]), bodyOf([['0', '2']]))).toBe(true);
  });
});

describe('the page', () => {
  test('a table with heads for a screen reader, and a button for each set', () => {
    const html = tableOf([watched('loss', MANY, { changed: true })], { group: 'job', rank: 2 });
    expect(html).toContain('<th scope="col" role="columnheader">Rank 2</th>');
    expect(html).toContain('<th scope="row" role="rowheader">');
    expect(html).toContain('aria-label="outlier, 300: 340268. Go to rank 300"');
    expect(html).toContain('changed: </span>1.002');
    expect(html).toContain('{all others (511)}</button> 1 … 1.511');
  });

  test('the chart is scaled to the others, and the outlier is labelled', () => {
    const html = tableOf([watched('loss', MANY)], undefined);
    expect(html).toContain('aria-label="Values of 512 ranks, from 1 to 1.511; outliers 300: 340268"');
    expect(html).toMatch(/<text [^>]*>340268<\/text>/);
  });

  test('the last stops are a chart, with those marked that had outliers', () => {
    const history = [
      { value: '0.5', outliers: '' },
      { value: '0.4', outliers: '2' },
      { value: '0.3', outliers: '' },
    ];
    const body = bodyOf([['0-3', '0.3']], { history });
    expect(historyOf(body).map(({ number, far, name }) => [number, far, name])).toEqual([
      [0.5, false, '2 stops ago'],
      [0.4, true, '1 stop ago'],
      [0.3, false, 'now'],
    ]);
    const html = tableOf([watched('loss', body)], undefined);
    expect(html).toContain('Values at the last 3 stops, from 0.3 to 0.5; with outliers once');
  });

  test('what comes from ranks is escaped', () => {
    const html = tableOf([watched('<b>', bodyOf([['0', '<img src=x>'], ['1', '"><script>']], { missing: '' }))], { group: '', rank: 0 });
    expect(html).not.toMatch(/<img|<script|<b>/);
    expect(tableOf([watched('x', null, { problem: '<i>' })], undefined)).toContain('&lt;i&gt;');
  });

  test('512 ranks are a small page', () => {
    const html = tableOf([watched('a', MANY), watched('b', MANY), watched('c', MANY)], { group: '', rank: 3 });
    expect(html.length).toBeLessThan(30_000);
    expect(pointsOf(MANY)).toHaveLength(512);
  });
});

test('CSV has a line for each rank and expression', () => {
  const text = csvOfAll([watched('a, b', bodyOf([['0-1', '5']])), watched('x', null), watched('=y', bodyOf([['0', '1']]))], 'job');
  expect(text.split('\r\n')).toEqual(['expression,group,rank,value,note', '"a, b",job,0,5,', '"a, b",job,1,5,', `"'=y",job,0,1,`, '']);
});
