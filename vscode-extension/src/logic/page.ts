/** The head and end that all pages share. Pure. */

import { escaped } from './compare/drawing';

export interface Shell {
  readonly nonce: string;
  readonly source: string;
  readonly script: string;
  readonly style: string;
}

/** What a page with a script of ours has to begin with. */
export interface Content {
  readonly title: string;
  readonly body: string;
}

/** Its script fills the rest. */
export function scriptedPage({ nonce, source, script, style }: Shell, { title, body }: Content): string {
  const content = `${body}\n<main id="result"></main>\n<script nonce="${nonce}" src="${escaped(script)}"></script>`;
  return page(`style-src ${source}; script-src 'nonce-${nonce}'`, style, title, content);
}

/** Nothing is loaded, and no script runs, but what is `allowed`. */
export function page(allowed: string, style: string, title: string, body: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="${escaped(`default-src 'none'; ${allowed}`)}">
<meta name="viewport" content="width=device-width, initial-scale=1.0">
<link rel="stylesheet" href="${escaped(style)}">
<title>${escaped(title)}</title>
</head>
<body>
${body}
</body>
</html>`;
}
