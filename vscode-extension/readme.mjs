// Writes the README of the package, with its pictures inside: VS Code shows none by a relative path.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

const PICTURE = /!\[([^\]]*)\]\((media\/[\w-]+\.png)\)/g;

function embedded(_, text, file) {
  return `![${text}](data:image/png;base64,${readFileSync(file).toString('base64')})`;
}

mkdirSync('dist', { recursive: true });
writeFileSync('dist/README.md', readFileSync('README.md', 'utf8').replace(PICTURE, embedded));
