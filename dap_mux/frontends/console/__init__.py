"""The terminal console: a debugger's prompt for all ranks, with Monarch's commands.

A console is a DAP client like any editor: it knows a session by its port and requests everything
from it. What a line means to ranks (`cast`, rank sets, pdb's commands) is up to the engine.

- `session_client`: the connection, each rank's state, and changes to announce.
- `commands`: what they do, and their table. They act on a `Context`, which `console` provides:
  lines in, text and tables out.
- `rank_prompt`: the prompt on ranks.
- `results`: what is shown. `screen`: how, on a terminal or as plain lines.
- `terminal` (prompt_toolkit, completions too), `plain` (pipes), `server` (`nc`): where lines come
  from.
"""

from __future__ import annotations
