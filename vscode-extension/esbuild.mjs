// Bundles the extension into one file; VS Code itself is the only thing that is not inside.
// Scripts of the webviews, where there are any, are bundled for the browser, and so is the style of a page without one.
import { build } from 'esbuild';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
const common = { bundle: true, minify: true, target: 'es2022', logLevel: 'warning', metafile: true };
const bundled = [];

const { metafile } = await build({
  ...common,
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  platform: 'node',
  format: 'cjs',
  external: ['vscode'],
});
bundled.push(...Object.keys(metafile.inputs));

const pages = 'src/webview';
if (existsSync(pages)) {
  const files = readdirSync(pages).filter((name) => /\.(ts|css)$/.test(name)); // not what they share
  const hasScript = (name) => files.includes(name.replace(/css$/, 'ts'));
  const entries = files.filter((name) => name.endsWith('.ts') || !hasScript(name));
  const { metafile } = await build({
    ...common,
    entryPoints: entries.map((name) => `${pages}/${name}`),
    outdir: 'dist/webview',
    platform: 'browser',
    format: 'iife',
  });
  bundled.push(...Object.keys(metafile.inputs));
}

// The licence of each package whose code is in the bundles: they ask to be passed on with it.
const PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;
const folders = [...new Set(bundled.flatMap((file) => PACKAGE.exec(file)?.[0] ?? []))].sort();
const notices = folders.map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (file === undefined) throw new Error(`${name} ${version} has no licence text: add it to the notices by hand`);
  return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/${file}`, 'utf8').trim()}\n`;
});
const head = 'dap-mux contains code of these packages:\n';
writeFileSync('dist/THIRD-PARTY-NOTICES.txt', [head, ...notices].join(`\n${'-'.repeat(72)}\n\n`));
