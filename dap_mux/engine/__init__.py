"""The multiplexer itself, sans-IO: `Engine.receive(input) -> list[Output]`.

There is no socket, clock, file or task in here. What happened outside comes in as an *input*
(`inputs`), and what should happen there goes out as an *output* (`outputs`). The shell carries the
outputs out; so every race is a scripted test. docs/internals/architecture.md lists the rooms.
"""

from dap_mux.engine.engine import Engine
from dap_mux.engine.inputs import Settings

__all__ = ["Engine", "Settings"]
