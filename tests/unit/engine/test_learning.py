"""The frames that a stop keeps of its stack."""

from __future__ import annotations

import msgspec

from dap_mux.engine.state.rank import Frame, Stop
from dap_mux.engine.stops.user_threads import learn_stack
from dap_mux.protocol.rank_messages import Stack


def test_the_frame_that_raised_has_its_own_name() -> None:
    """debugpy marks it; in the table of ranks it would look like a function of another name."""
    said = {"id": 1, "name": "work (Current frame)", "line": 3, "source": {"path": "/job/a.py"}}
    stop = Stop(1, "exception", {})
    learn_stack(None, None, stop, msgspec.convert({"stackFrames": [said]}, Stack))  # type: ignore[arg-type]
    assert stop.frames == (Frame("/job/a.py", "work", 3),)
