"""`dap-mux doctor`: why something does not work, as numbered causes with evidence and the fix.

First `gather` collects observations: this machine's ports and processes (`machine`), the state of
running sessions (`snapshot`), the folder's launch.json (`launch_json`), and, where none of these is
conclusive, a harmless DAP conversation with the endpoint (`probe`). Then each row of `causes`
examines the observations, and `report` prints the findings.

Observing disturbs no rank. A debugpy that is connected to and left wedges
(docs/internals/debugpy.md#five-ways-to-lose-a-rank), so local ports are read from /proc, ranks of a
session are asked through it, and the one conversation goes as far as `attach` and ends with
`disconnect`: after that a rank that waits for a client goes on waiting, and one that is debugged is
not disturbed (measured).
"""
