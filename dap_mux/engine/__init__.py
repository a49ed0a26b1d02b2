"""The multiplexer itself, sans-IO: `Engine.receive(input) -> list[Output]`.

There is no socket, clock, file or task in here. What happened outside comes in as an *input*
(`inputs`): bytes decoded to messages, links up and down, deadlines. What should happen outside
goes out as an *output* (`outputs`): messages, connections, deadlines. The shell carries the
outputs out; so every race is a scripted test.

The rooms, in the order in which a message meets them:

- `routes` and `messages`: one row for each request of a client; requests, answers, events.
- `clients`: how a client attaches, and leaves.
- `ranks`: how a rank is connected, attached, lost and left.
- `events`: one row for each event of a rank; output; how the session ends.
- `stops`: continue, pause, step; merging stops; the events that tell each kind of client.
- `breakpoints`: of all clients, with rank sets. `source_files`: paths and contents.
- `evaluate`: one expression in many ranks; data of one rank; meshes; time-outs of collectives.
- `commands`: our own requests, pdb's commands, the debug console.
- `state`: what they share. pyproject.toml has the order.
"""

from dap_mux.engine.engine import Engine
from dap_mux.engine.inputs import Settings

__all__ = ["Engine", "Settings"]
