import { describe, expect, test } from 'vitest';
import { conditionWords } from '../src/logic/conditions/words';
import { row } from './ranks/row';

describe('what a condition may begin with', () => {
  test('dimensions, names, and the words that wait', () => {
    const rows = [0, 1, 2, 3].map((rank) => row(rank, { coords: { dp: rank >> 1, tp: rank % 2 } }));
    const labels = conditionWords(rows, [{ name: 'slow', ranks: '1,3' }]).map(({ label }) => label);
    expect(labels).toEqual(expect.arrayContaining(['ranks()', 'ranks(dp=0): ', 'ranks(dp=1): ', 'ranks(tp=0): ', 'ranks(tp=1): ', '@slow: ', 'barrier', 'differ: ']));
    const tp = conditionWords(rows, []).find(({ label }) => label === 'ranks(tp=1): ');
    expect(tp).toEqual({ label: 'ranks(tp=1): ', detail: 'only these ranks: 1,3', snippet: 'ranks(tp=1): $0' });
  });

  test('few of very many places', () => {
    const rows = Array.from({ length: 512 }, (_, rank) => row(rank, { coords: { dp: rank } }));
    expect(conditionWords(rows, []).length).toBeLessThan(64);
  });

  test('what a rank or a name says is no snippet', () => {
    const words = conditionWords([row(0, { coords: { '${1}': 0 } })], []);
    expect(words.find(({ label }) => label.includes('{1}'))?.snippet).toBe('ranks(\\${1\\}=0): $0');
  });
});
