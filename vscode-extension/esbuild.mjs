// Bundles the extension into one file; VS Code itself is the only thing that is not inside.
// Scripts of the webviews, where there are any, are bundled for the browser, and so is the style of a page without one.
import { build } from 'esbuild';
import { existsSync, readdirSync, rmSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
const common = { bundle: true, minify: true, target: 'es2022', logLevel: 'warning' };

await build({
  ...common,
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  platform: 'node',
  format: 'cjs',
  external: ['vscode'],
});

const pages = 'src/webview';
if (existsSync(pages)) {
  const files = readdirSync(pages);
  const hasScript = (name) => files.includes(name.replace(/css$/, 'ts'));
  const entries = files.filter((name) => name.endsWith('.ts') || !hasScript(name));
  await build({
    ...common,
    entryPoints: entries.map((name) => `${pages}/${name}`),
    outdir: 'dist/webview',
    platform: 'browser',
    format: 'iife',
  });
}
