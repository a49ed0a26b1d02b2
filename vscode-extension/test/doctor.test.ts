import { describe, expect, test } from 'vitest';
import { QUESTIONS, said } from '../src/logic/doctor';

describe('the command Doctor', () => {
  test('asks the doctor, who may take longer than anybody else', () => {
    const words = QUESTIONS.map((one) => one.words.join(' '));
    expect(words).toEqual(['--version', 'doctor', 'sessions', 'config show']);
    const [doctor] = QUESTIONS.filter((one) => one.words[0] === 'doctor');
    expect(doctor?.limit).toBe(Math.max(...QUESTIONS.map((one) => one.limit)));
  });

  test('shows the causes, with which the doctor ends with 1', () => {
    const page = '1. connection refused: nothing listens on 127.0.0.1:5678  [refused]\n';
    expect(said({ code: 1, stdout: page, stderr: '' })).toBe(page);
    expect(said({ code: 2, stdout: '', stderr: 'dap-mux: no\n' })).toBe('dap-mux: no\n');
  });

  test('shows why there is no answer at all', () => {
    expect(said(new Error('spawn ENOENT'))).toBe('Error: spawn ENOENT');
    expect(said({ stdout: '', stderr: '', toString: () => 'killed' })).toBe('killed');
  });
});
