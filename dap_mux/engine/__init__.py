"""The multiplexer itself, sans-IO: `Engine.receive(input) -> list[Output]`.

No socket, clock, file or task in here. What happened outside comes in as an *input*
(`inputs`): bytes decoded to messages, links up and down, deadlines. What should happen
outside goes out as an *output* (`outputs`): messages, connections, deadlines. The shell
carries the outputs out; so every race is a scripted test.

Where things are, in the order in which a message meets them:

- `requests`, `routes`, `events`: one row for each request of a client and each event of a rank.
- `clients`, `lifecycle` (which decides; `connector`, `handshake`, `subprocesses` and `departure`
  carry out): who speaks to us; how a rank is attached, lost and left.
- `control`, `stops`, `announce`: continue, pause, step; merging stops; telling each kind of client.
- `inspect`, `breakpoints`: requests for one rank's data; breakpoints with rank sets.
- `mappings`, `files`, `sources`: each rank's paths; whether its files are the client's; their text.
- `scope`, `view`, `handles`: what a request acts on; ranks as threads; ids that belong to ranks.
- `meshes`: which ranks a rank set means, and where the ranks say they are.
- `paused`: which clocks would end the job while it stands still.
- `asking`, `arrivals`, `drawer`: one expression to many ranks; who waits for a rank to stand still;
  breakpoints that commands make, rank by rank.
- `commands`: our own requests. `merge`: fan-in reducers. `core`: the state they share.
"""

from dap_mux.engine.engine import Engine
from dap_mux.engine.settings import Settings

__all__ = ["Engine", "Settings"]
