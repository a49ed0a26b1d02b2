"""The language server, `dap-mux lsp`: what ranks do, shown in the text, in any editor.

It joins the running session as an observer, so it starts, configures and keeps nothing.

- `watch`: which session runs here; looks at one folder, and reads only what has changed.
- `following`: joins that session, again and again, and keeps a `Picture` of its ranks.
- `picture`: where ranks stand, as the session's events tell it; pure, like all below.
- `expressions`: what stands under the cursor, and in which function.
- `text`: what is shown of it all: labels and values in Markdown or plain.
- `jsonc`, `launch`, `mending`: launch.json as it is typed: its rank sets, and path mappings
  that are written into it.
- `server`: the features; each asks the parts above, and nothing waits for a rank for long.

Needs the extra `[lsp]`; nothing else of the package imports this.
"""

from __future__ import annotations
