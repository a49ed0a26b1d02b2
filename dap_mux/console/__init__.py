"""The terminal console: a debugger's prompt for all ranks, in Monarch's words.

A console is a DAP client like any editor: it knows a session by its port and asks it for
everything. What a line means to ranks (`cast`, rank sets, pdb's words) is the engine's business.

- `link`: the connection, and `picture`: what is known of each rank, and what is news.
- `words`: the table of commands, in `looking` and `driving`; `attached`: the prompt on a rank.
- `console`: one line in, lines and tables out; errors are sentences.
- `tables`, `answers`, `places`: what is shown. `screen`: how, on a terminal or in plain lines.
- `terminal` (prompt_toolkit), `plain` (pipes), `serving` (`nc`): where lines come from.
- `completion`: what may stand at the cursor.
"""

from __future__ import annotations
