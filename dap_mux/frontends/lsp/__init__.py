"""The language server, `dap-mux lsp`: shows what ranks do in the source, in any editor.

It joins the running session as an observer, so it starts, configures and keeps nothing.

- `session_follower`: finds the running session in a folder of which it reads only what has changed,
  joins it, rejoins as needed, and keeps a `RankState` of its ranks: where they are stopped.
- `file_versions`: where the lines that ranks run are in the text as it is edited.
- `expressions`: the expression under the cursor, and the function around it.
- `server`: JSON-RPC in which every malformed request is answered, and work that follows changes.
- `jsonc`, `launch_json`: launch.json while it is edited, and the rank sets in it; `problems` writes
  path mappings into it.
- `features`: what an editor is offered, by the parts above; none of it waits long for a rank.

Needs the extra `[lsp]`; no other part of the package imports this one.
"""

from __future__ import annotations
