import { describe, expect, test } from 'vitest';
import { REPORTS, outputOf } from '../src/logic/doctor';

describe('the command Doctor', () => {
  test('asks the doctor last, who may take longer than anybody else', () => {
    const args = REPORTS.map((one) => one.args.join(' '));
    expect(args).toEqual(['--version', 'sessions', 'config show', 'doctor']);
    const [doctor] = REPORTS.filter((one) => one.args[0] === 'doctor');
    expect(doctor?.timeoutMs).toBe(Math.max(...REPORTS.map((one) => one.timeoutMs)));
  });

  test('shows the causes, with which the doctor ends with 1', () => {
    const page = '1. connection refused: nothing listens on 127.0.0.1:5678  [refused]\n';
    expect(outputOf({ code: 1, stdout: page, stderr: '' })).toBe(page);
    expect(outputOf({ code: 2, stdout: '', stderr: 'dap-mux: no\n' })).toBe('dap-mux: no\n');
  });

  test('shows why there is no answer at all', () => {
    expect(outputOf(new Error('spawn ENOENT'))).toBe('Error: spawn ENOENT');
    expect(outputOf({ stdout: '', stderr: '', toString: () => 'killed' })).toBe('killed');
  });
});
