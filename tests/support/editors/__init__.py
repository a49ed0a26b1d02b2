"""What a user of a real editor sees: three editors as pure state machines fed with DAP messages.

Modelled after the editors' public sources at their HEAD: VS Code (debugSession.ts, debugModel.ts,
rawDebugSession.ts, debugService.ts), nvim-dap (session.lua, entity.lua), dape (dape.el). The
numbers that VS Code takes in practice were measured. Each model asks what its editor would ask,
so a server is tested by answering; what would be a timer is a `tick_...` method.

What each needs, S = stopped, C = continued, T = thread, F = the focused thread:

- **All of them** apply a S when the `threads` that it triggers is answered. A C sent earlier is
  overwritten (VS Code, nvim-dap), or makes dape ignore the stop. nvim-dap asks no `threads` when
  it knows all of them; a `stackTrace` for S's thread shows in every editor that S was applied.
  Resuming is announced in the order response, C, S: dape takes the response to a step for "all
  running", and VS Code simulates a C at the response unless a S was faster.

- **VS Code**, some stopped and one running: S{F, all}, and after `threads` C{runner, not all}.
  A late stopper is S{F again, all, preserveFocusHint} and the C again; a new thread id there
  paints a second line. Without anything focused a S with the hint focuses nothing. A C that names
  F alone arms a timer: 800 ms later the focus goes to the oldest stop that was not continued;
  any S disarms it, any other C re-aims it. A `continue` response without allThreadsContinued
  reuses the last value seen. T{started} with a known id renames a row, but cancels what is under
  way for a stop of that thread. T{exited, F} focuses another stopped thread without a line.

- **nvim-dap**, the same: S{F, all}, C{runner, not all}. While it holds F as stopped, any S for
  another thread, unless its reason is `pause` and it is not `all`, is answered with `continue`
  for that thread. So a late stopper is S{X, reason pause, not all}: marked, no jump, nobody
  resumed. (S{F, hint} would remove the arrow.) To move the focus, C{F} first. A step forgets F at
  once, so the next S decides. It ignores the body of a `continue` response: a C must follow.
  T{started} with a known id marks that thread as running; T{exited, F} does not free F: C{F}
  goes before it.

- **dape**, the same: S{F, all}, C{runner, not all}, then S{F, not all} again, since any C drops
  the arrow and says "running". Every S selects its thread, whatever its hint: a late stopper is
  S{X} and S{F} at once, both not all; F is selected again before the first is answered. Each T asks
  for `threads`, and T{started} marks its thread as running, a stopped one too.
"""

from __future__ import annotations

from tests.support.editors.base import Editor
from tests.support.editors.dape import DapeModel
from tests.support.editors.nvim_dap import NvimDapModel
from tests.support.editors.vscode import VSCodeModel

__all__ = ["DapeModel", "Editor", "NvimDapModel", "VSCodeModel"]
