"""Ranks wait for each other in sends and receives, in a circle."""

from __future__ import annotations

from dap_mux.insight.why.graph import graph_of
from dap_mux.insight.why.picture import Picture
from dap_mux.insight.why.verdict import Verdict, ranks, suspects, who_waits

NAME = "p2p-cycle"


def find(picture: Picture) -> Verdict | None:
    """Each of them must be in a send or receive: a collective among them is another verdict's."""
    circle = [picture.ranks[rank] for rank in sorted(graph_of(picture).circle)]
    if not circle or not all(one.wait and one.wait.point_to_point for one in circle):
        return None
    return Verdict(
        NAME,
        f"{ranks(circle)} wait for each other in a circle of sends and receives",
        suspects(circle, picture),
        who_waits(picture),
        "let one of them receive first, or use isend and irecv",
    )
