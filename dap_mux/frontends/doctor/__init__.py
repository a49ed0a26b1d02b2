"""`dap-mux doctor`: why something does not work, as numbered causes with evidence and the fix.

First `gather` collects observations, then each row of `causes` examines them. Observing disturbs no
rank. A debugpy that is connected to and left wedges
(docs/internals/debugpy.md#five-ways-to-lose-a-rank), so local ports are read from /proc, ranks of a
session are asked through it, and a conversation with an endpoint (`observations`) comes last.
"""
