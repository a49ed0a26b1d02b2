"""Ranks wait for each other in sends and receives, in a circle."""

from __future__ import annotations

from dap_mux.insight.why.picture import Doing, Picture
from dap_mux.insight.why.verdict import Verdict, ranks, suspects, who_waits
from dap_mux.insight.why.waits import SENDS

NAME = "p2p-cycle"


def find(picture: Picture) -> Verdict | None:
    """Follow each rank to the one that it waits for."""
    for start in picture.waiting:
        seen = [start]
        while (following := _peer(seen[-1], picture)) is not None:
            if following in seen and following.wait is not None:
                return _verdict(seen[seen.index(following) :], picture)
            seen.append(following)
    return None


def _peer(one: Doing, picture: Picture) -> Doing | None:
    """Return whom a rank waits for; a send and the receive that it is for only take their time."""
    wait = one.wait
    peer = picture.peer(one) if wait is not None and wait.point_to_point else None
    if wait is None or peer is None or peer.wait is None:
        return peer
    fit = {wait.plain in SENDS, peer.wait.plain in SENDS} == {True, False}
    return None if fit and picture.peer(peer) is one else peer


def _verdict(cycle: list[Doing], picture: Picture) -> Verdict:
    cycle = sorted(cycle, key=lambda one: one.rank)
    return Verdict(
        NAME,
        f"{ranks(cycle)} wait for each other in a circle of sends and receives",
        suspects(cycle, picture),
        who_waits(picture),
        "let one of them receive first, or use isend and irecv",
    )
