import { expect, test } from 'vitest';
import { groupsOf, nameOfSet, numberOf, short, summaryOf, type CompareBody } from '../../src/logic/compare/answer';
import { csvOf, fileName } from '../../src/logic/compare/csv';
import { histogramSvg, sparklineSvg } from '../../src/logic/compare/drawing';
import { PAGE, shown } from '../../src/logic/compare/page';
import { scriptedPage } from '../../src/logic/page';

const HISTOGRAM = { edges: [2, 3, 4], counts: [4, 1] };
const BODY: CompareBody = {
  values: [
    { ranks: '0-3', value: '2.25', outlier: false },
    { ranks: '5', value: '4.0', outlier: true },
    { ranks: '4', value: 'nan', outlier: true },
  ],
  statistics: { min: 2.25, max: 4, mean: 2.6, std: 0.7, nan: 1, inf: 0, histogram: HISTOGRAM },
  outliers: '4-5',
  errors: [{ ranks: '6', message: "NameError: name 'loss' is not defined" }],
  missing: '7-8',
};
const asked = { expression: 'loss', ranks: 'all', frame: null };

test.each([
  ['2.25', 2.25],
  ['-3', -3],
  ['1e-3', 0.001],
  ['nan', NaN],
  ['-inf', -Infinity],
  ['True', undefined],
  ['0x10', undefined],
  ['', undefined],
])('%j reads as %j', (text, number) => {
  expect(numberOf(text)).toBe(number);
});

test('groups: outliers come first; they, NaN, failures and silence are marked in words', () => {
  expect(groupsOf(BODY).map((group) => [nameOfSet(group), group.marks])).toEqual([
    ['⚠ {5}', ['outlier']],
    ['⚠ {4}', ['outlier', 'NaN']],
    ['{0-3}', []],
    ['{6}', ['failed']],
    ['{7-8}', ['no response']],
  ]);
});

test('a tensor with NaN inside is marked', () => {
  const value = 'Tensor[4] float32 cpu · norm nan · nan 3 · inf 0';
  const [group] = groupsOf({ ...BODY, values: [{ ranks: '0', value, outlier: false }], outliers: '' });
  expect(group?.marks).toEqual(['3 NaN inside']);
});

test('the summary counts', () => {
  expect(summaryOf(BODY)).toBe('9 ranks · 3 different values · 2 outliers · 1 failed · 2 without an answer');
  const same = { ...BODY, values: [{ ranks: '0-7', value: '1', outlier: false }], outliers: '', errors: [], missing: '' };
  expect(summaryOf(same)).toBe('8 ranks · all the same value');
  expect(summaryOf({ ...same, missing: '8' })).toBe('9 ranks · 1 value · 1 without an answer');
});

test('numbers are told with six digits that count', () => {
  expect([short(2.123456789), short(1e-9 / 3), short(12), short(null)]).toEqual(['2.12346', '3.33333e-10', '12', 'unknown']);
});

test('CSV: one line a rank in order, what needs quotes is quoted, formulas are disarmed', () => {
  expect(csvOf(BODY, 'job').split('\r\n')).toEqual([
    'group,rank,value,note',
    ...[0, 1, 2, 3].map((rank) => `job,${rank},2.25,`),
    'job,4,nan,"outlier, NaN"',
    'job,5,4.0,outlier',
    "job,6,,failed: NameError: name 'loss' is not defined",
    'job,7,,no response: no response in time',
    'job,8,,no response: no response in time',
    '',
  ]);
  const one = (value: string): string | undefined =>
    csvOf({ ...BODY, values: [{ ranks: 'eval:0', value, outlier: false }], outliers: '', errors: [], missing: '' }, 'job').split('\r\n')[1];
  expect(one('a "b", c')).toBe('eval,0,"a ""b"", c",');
  expect(one('-3.5')).toBe('eval,0,-3.5,');
  expect(one('=HYPERLINK(1)')).toBe("eval,0,'=HYPERLINK(1),");
});

test('the file is named after the expression', () => {
  expect([fileName('loss'), fileName('xs[0].norm()'), fileName('…')]).toEqual([
    'compare-loss.csv',
    'compare-xs-0-norm.csv',
    'compare-ranks.csv',
  ]);
});

test('the histogram tells each bar in words, and marks those with an outlier', () => {
  const svg = histogramSvg(HISTOGRAM, [4]);
  expect(svg).toContain('role="img"');
  expect(svg).toContain('<title>2 to 3: 4 ranks</title>');
  expect(svg).toMatch(/class="bar far"[^>]*><title>3 to 4: 1 rank, outlier</);
});

test('the line rank by rank breaks at NaN, and is there for two ranks at least', () => {
  const svg = sparklineSvg(groupsOf(BODY));
  expect(svg.match(/<circle/g)).toHaveLength(5);
  expect(svg).toMatch(/✕<title>rank 4: NaN, outlier</);
  expect(/d="([^"]*)"/.exec(svg)?.[1]?.match(/M/g)).toHaveLength(2);
  expect(sparklineSvg(groupsOf({ ...BODY, values: [{ ranks: '0', value: '1', outlier: false }] }))).toBe('');
});

test("a rank's answer cannot become HTML", () => {
  const evil = '<img src=x onerror=alert(1)>"';
  const { html } = shown({ ...asked, body: { ...BODY, values: [{ ranks: '0', value: evil, outlier: false }], outliers: '' } });
  expect(html).not.toContain('<img');
  expect(html).toContain('&lt;img src=x onerror=alert(1)&gt;&quot;');
});

test('each row has a link to its rank, for the mouse, the keyboard and screen readers', () => {
  const { html, outliers } = shown({ ...asked, body: BODY });
  expect(html.match(/<button type="button" class="go"/g)).toHaveLength(5);
  expect(html.match(/tabindex="0"/g)).toHaveLength(1);
  expect(html).toContain('aria-label="rank 4: nan, outlier, NaN. Go to rank 4" title="Go to rank 4">⚠ {4}</button>');
  expect(html).toContain('title="Go to rank 0, the first of these">{0-3}</button>');
  expect(outliers).toBe(true);
});

test('the page: nothing but our own script and style, no handlers or styles inside', () => {
  const page = scriptedPage({ nonce: 'abc', source: 'https://own', script: 's.js', style: 's.css' }, PAGE);
  expect(page).toContain("default-src &#39;none&#39;; style-src https://own; script-src &#39;nonce-abc&#39;");
  const whole = page + shown({ ...asked, body: BODY }).html;
  expect(whole.match(/<script/g)).toHaveLength(1);
  expect(whole).not.toMatch(/\son\w+=|\sstyle=|unsafe/);
});
