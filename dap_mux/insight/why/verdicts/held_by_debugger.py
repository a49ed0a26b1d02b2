"""A rank stands in a debugger: ours, or a pdb that waits for a line."""

from __future__ import annotations

from dap_mux.insight.why.picture import Doing, Picture
from dap_mux.insight.why.verdict import Verdict, place, ranks, suspects, verb, who_waits

NAME = "held-by-debugger"
PROMPTS = frozenset({("pdb.py", "interaction"), ("pdb.py", "_cmdloop"), ("bdb.py", "user_line")})


def find(picture: Picture) -> Verdict | None:
    """All that stand; the others may wait for them or run."""
    held = [one for one in picture.live if _holder(one)]
    if not held:
        return None
    where = f" at {place(held[0].place)}" if held[0].place else ""
    stands = verb(held, "stands", "stand")
    return Verdict(
        NAME,
        f"{ranks(held)} {stands} in {_holder(held[0])}{where}",
        suspects(held, picture),
        who_waits(picture, held),
        f"cast {','.join(str(one.rank[1]) for one in held)} c",
    )


def _holder(one: Doing) -> str:
    if one.standing.stop:
        return f"the debugger ({one.standing.stop})"
    names = {(frame.path.rpartition("/")[2], frame.function) for frame in one.stack}
    return "pdb, which waits for a line" if names & PROMPTS else ""
