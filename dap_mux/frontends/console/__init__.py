"""The terminal console: a debugger's prompt for all ranks, with Monarch's commands.

A console is a DAP client like any editor: it knows a session by its port and requests everything
from it. What a line means to ranks (`cast`, rank sets, pdb's commands) is up to the engine.
"""

from __future__ import annotations
