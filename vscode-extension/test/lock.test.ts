import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

test('package-lock.json names no registry: each machine has its own', () => {
  const text = readFileSync(path.join(__dirname, '..', 'package-lock.json'), 'utf8');
  const lock = JSON.parse(text) as { packages: Record<string, { resolved?: string }> };
  const named = Object.entries(lock.packages).filter(([, each]) => each.resolved !== undefined);
  expect(named.map(([name]) => name)).toEqual([]);
});
