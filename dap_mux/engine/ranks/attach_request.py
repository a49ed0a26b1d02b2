"""What the first controller's `attach` asks of the ranks."""

from __future__ import annotations

from msgspec import Struct, field

from dap_mux.engine.state.bodies import Body


class AttachRequest(Struct):
    """Whether a controller has asked to attach, and with which arguments.

    `left`: the last of them has left, so newcomers wait for nobody.
    """

    wanted: bool = False
    left: bool = False
    arguments: Body = field(default_factory=dict)

    @property
    def debugs_children(self) -> bool:
        """Whether processes that ranks start are debugged."""
        return self.arguments.get("subProcess") is True
