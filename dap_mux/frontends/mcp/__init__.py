"""The tools of a coding agent, `dap-mux mcp`: the Model Context Protocol over a session.

An agent looks as an observer does, and drives as a console does. Needs the extra `[mcp]`; no other
part of the package imports this one.
"""

from __future__ import annotations
