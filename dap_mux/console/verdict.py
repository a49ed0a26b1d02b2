"""The response of `why` as text: the sentence first, the evidence, then the command that helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dap_mux.console.screen import Screen

FINE: Final = frozenset({"healthy"})


def show_verdict(screen: Screen, body: Mapping[str, Any]) -> None:
    """Show what keeps the job from moving on."""
    style = "plain" if body["verdict"] in FINE else "title"
    screen.say(f"{body['verdict']}: {body['sentence']}", style)
    for line in body["evidence"]:
        screen.say(f"  {line}")
    if body["next"]:
        screen.say(f"  try: {body['next']}")
