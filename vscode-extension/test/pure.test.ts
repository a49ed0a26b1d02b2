import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.join(__dirname, '..', 'src', 'logic');

test('what decides something runs without an editor: src/logic imports src/logic and Node only', () => {
  const found = readdirSync(ROOT, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  expect(found.length).toBeGreaterThan(0);
  for (const name of found) {
    const file = path.join(ROOT, name);
    for (const [, target = ''] of readFileSync(file, 'utf8').matchAll(/\bfrom '([^']+)'|import\('([^']+)'\)/g)) {
      const within = target.startsWith('.') && path.resolve(path.dirname(file), target).startsWith(ROOT);
      expect(within || target.startsWith('node:'), `${name} imports ${target}`).toBe(true);
    }
  }
});
