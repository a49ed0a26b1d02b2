import { expect, test } from 'vitest';
import { castReport, castText, listReport, problemsOf, type CastBody } from '../../src/logic/ranks/reports';
import { commandsFor, completed, readySets, typedRanks } from '../../src/logic/ranks/suggestions';
import { row, running } from './row';

const all = [row(0), row(1), row(2), row(3), running(4)];

test('copied as cast: the ranks that stand where this one stands, else all that are stopped', () => {
  expect(castText('p loss', row(0), all)).toBe('cast ranks(0:4) p loss');
  expect(castText('p loss', undefined, all)).toBe('cast ranks(0:4) p loss');
  expect(castText('w', running(4), all)).toBe('cast ranks(4) w');
  const two = [row(0, { group: 'trainer' }), row(1, { group: 'trainer' }), row(0, { group: 'eval' })];
  expect(castText('p loss', two[0], two)).toBe('cast trainer.ranks(0:2) p loss');
});

const body: CastBody = {
  results: [
    { ranks: '0-1,3', value: '2.25', type: 'float' },
    { ranks: '2', value: 'nan', type: 'float' },
  ],
  errors: [{ ranks: '4', message: 'is waiting' }],
  missing: '5',
  outliers: '2',
  inMain: '3',
};

test('the merged answer: equal answers together, who differs and who failed named', () => {
  expect(castReport('all', 'p loss', body)).toBe(
    [
      'cast all p loss',
      '  0-1,3  2.25',
      '  2      nan   (differs from the others)',
      '  4      failed: is waiting',
      '  5      no response in time',
      '  (rank 3 was running: answered from the main module, or where its main thread is)',
    ].join('\n'),
  );
  expect(problemsOf(body)).toBe('4: is waiting; 5: no response in time');
});

test('an answer of several lines stays in its column', () => {
  const one = { ...body, results: [{ ranks: '0', value: 'a\nb', type: '' }], errors: [], missing: '', inMain: '' };
  expect(castReport('0', 'w', one)).toBe('cast 0 w\n  0  a\n     b');
});

test('the list of ranks is a table', () => {
  expect(listReport([row(0), running(1)])).toBe(
    [
      '2 ranks',
      'rank  state    reason      host   process  place',
      '0     stopped  breakpoint  node1  4000     /src/train.py:41 step',
      '1     running              node1  4001',
    ].join('\n'),
  );
});

test('what is typed is taken once the session says who is meant', () => {
  expect(typedRanks('0-1', { ranks: [row(0), row(1)], problem: '' })).toEqual([
    { text: '0-1', label: '$(check) 0-1', description: '2 ranks: 0-1', complete: true },
  ]);
  const [wrong] = typedRanks('ranks(ddp=0)', {
    ranks: [],
    problem: "no dimension 'ddp': did you mean dp?\n  ranks(ddp=0)\n        ^^^",
  });
  expect(wrong).toMatchObject({ problem: "no dimension 'ddp': did you mean dp?", complete: false });
  expect(typedRanks('lost', { ranks: [], problem: '' })[0]?.complete).toBe(false);
});

test('ready-made sets: everybody, states, names, places', () => {
  const offered = readySets(all, [{ name: 'slow', ranks: '1,3' }]).map(({ text, description }) => `${text}: ${description}`);
  expect(offered).toEqual([
    'all: 5 ranks',
    'stopped: 4 ranks',
    'running: 1 rank',
    '@slow: 1,3',
    '0-3: 4 ranks stopped at train.py:41 in step: 0-3',
  ]);
});

test("the adapter's completions go on with the text that was typed", () => {
  const targets = [
    { label: 'dp=', start: 11, length: 1, detail: 'dimension of 2' },
    { label: 'cast ', start: 0, length: 4 },
  ];
  expect(completed('ranks(d', 'cast ', targets)).toEqual([
    { text: 'ranks(dp=', label: 'ranks(dp=', description: 'dimension of 2', complete: false },
  ]);
});

test('words of pdb are offered, and any text is a command', () => {
  expect(commandsFor('').map(({ text }) => text)).toContain('n');
  expect(commandsFor('loss')[0]).toMatchObject({ text: 'loss', complete: true });
  expect(commandsFor('  ').some(({ complete, text }) => complete && text.trim() === '')).toBe(false);
});
