import { expect, test } from 'vitest';
import { notesFor } from '../../src/logic/values/notes';

const TEXT = [
  'loss = 0',
  'def train(batch):',
  '    loss = model(batch)  # loss of this step',
  '    self.loss = loss * scale',
  '    rate = 0.1',
  '    reduce(loss)',
];
const VARIABLES = [
  { name: 'loss', acrossRanks: { note: '≠ {2} 340268' } },
  { name: 'batch' },
  { name: 'scale', acrossRanks: { note: '≠ {0} 1' } },
  { name: 'model', acrossRanks: { note: '≠ {1-63} 1 … 63' } },
  { name: 'nowhere', acrossRanks: { note: '≠ {1} 1' } },
];
const at = (line: number): string => TEXT[line] ?? '';

test('a variable that differs has its note where it stands last', () => {
  expect(notesFor(at, 5, VARIABLES)).toEqual([
    { line: 5, column: 11, end: 15, text: 'loss ≠ {2} 340268' },
    { line: 3, column: 23, end: 28, text: 'scale ≠ {0} 1' },
  ]);
});

test('an attribute and a comment are no variable, and another function is not read', () => {
  const found = notesFor(at, 2, VARIABLES);
  expect(found).toEqual([{ line: 2, column: 4, end: 8, text: 'loss ≠ {2} 340268' }]);
  expect(notesFor(at, 1, VARIABLES)).toEqual([]);
});
