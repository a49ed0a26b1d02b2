/** The head and end that pages with a script of ours share. Pure. */

import { escaped } from './compare/drawing';

export interface Shell {
  readonly nonce: string;
  readonly source: string;
  readonly script: string;
  readonly style: string;
}

/** The page around its content: nothing from elsewhere is loaded, and no script but ours runs. */
export function scriptedPage({ nonce, source, script, style }: Shell, title: string, body: string): string {
  const policy = `default-src 'none'; style-src ${source}; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="${escaped(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1.0">
<link rel="stylesheet" href="${escaped(style)}">
<title>${escaped(title)}</title>
</head>
<body>
${body}
<main id="result"></main>
<script nonce="${nonce}" src="${escaped(script)}"></script>
</body>
</html>`;
}
