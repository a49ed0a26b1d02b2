import { expect, test } from 'vitest';
import type { WhyBody } from '../src/logic/why/answer';
import { whyPage } from '../src/logic/why/page';

const LINKS = { again: 'x.again', copy: 'x.copy', open: 'x.open' };
const SHELL = { source: 'https://cdn', style: 'https://cdn/why.css' };
const load = { path: '/job/train.py', line: 30, name: 'load', library: false };
const body: WhyBody = {
  verdict: 'not-joined',
  sentence: 'rank 2 stands at train.py:30 (load), and the others wait',
  suspects: [
    { ranks: '2', stack: [load, { ...load, line: 9, name: 'main' }], waitingFor: '' },
    { ranks: '0-1,3', stack: [{ ...load, name: 'all_reduce' }], waitingFor: 'all_reduce' },
  ],
  evidence: ['it has not reached all_reduce'],
  next: 'dap-mux console, then `attach 2`',
};

function page(changed: Partial<WhyBody> = {}): string {
  return whyPage({ ...body, ...changed }, '14:03:05', LINKS, SHELL);
}

test('the sentence comes first, then the evidence, then the command, then the suspects', () => {
  const said = [body.sentence, 'it has not reached', 'attach 2', 'rank 2<', 'ranks 0-1,3', 'As of 14:03:05'];
  const places = said.map((words) => page().indexOf(words));
  expect(places.every((place) => place > 0)).toBe(true);
  expect(places).toEqual([...places].sort((one, other) => one - other));
});

test("each frame of a suspect's stack is a link to it", () => {
  expect(page()).toContain(`<a href="command:x.open?${encodeURIComponent('[0,1]')}" aria-label="main, train.py:9. Go there">main</a>`);
});

test('a frame without a file is no link', () => {
  const stack = [{ path: '<frozen runpy>', line: 88, name: '_run_code', library: true }];
  const shown = page({ suspects: [{ ranks: '2', stack, waitingFor: '' }] });
  expect(shown).toContain('<li class="library">_run_code ');
  expect(shown).not.toContain('x.open');
});

test('nothing that a rank says is taken for a part of the page, and no script runs', () => {
  const evil = '<script>alert(1)</script>"&';
  const stack = [{ ...load, name: evil, path: `/${evil}` }];
  const shown = page({ sentence: evil, evidence: [evil], next: evil, suspects: [{ ranks: evil, stack, waitingFor: evil }] });
  expect(shown).not.toContain('<script');
  expect(shown).toContain('default-src &#39;none&#39;');
});

test('an answer without evidence, suspects or a command has no empty parts', () => {
  const shown = page({ verdict: 'healthy', sentence: 'all ranks get on', evidence: [], suspects: [], next: '' });
  expect(shown).toContain('class="fine">healthy');
  for (const part of ['id="evidence"', 'id="next"', '<section']) expect(shown).not.toContain(part);
});
