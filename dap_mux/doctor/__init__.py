"""`dap-mux doctor`: why something does not work, as numbered causes with evidence and the fix.

First a *scene* is gathered (`gather`): what this machine's own tables say of ports and processes
(`machine`), what a running session says when an observer asks (`picture`), what the folder's
launch.json wants (`launch`), and, where neither can tell, one proper conversation with a debugpy
(`conversation`). Then each row of `causes` looks at the scene and says what it finds; `report`
prints it.

Looking disturbs no rank. A debugpy that is connected to and left wedges
(docs/internals/debugpy.md#five-ways-to-lose-a-rank), so local ports are read from /proc, ranks of a
session are asked through it, and the one conversation goes as far as `attach` and ends with
`disconnect`: after that a rank that waits for a client goes on waiting, and one that is debugged is
not disturbed (measured).
"""
