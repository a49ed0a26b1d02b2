"""Rank sets: the one language in which people say which ranks they mean.

The console, `evaluate`, launch.json, breakpoints and the language server all use it. Text
goes through `tokens` and `grammar` into a tree of frozen nodes (`algebra`), each
a `RankSet`. A tree knows no session: `RankSet.select` holds it against a `World`, a
snapshot of the ranks, their states, meshes and named sets. `world.fold` goes the other way, from
ranks to the shortest text, `prefix` finds the rank set at the head of a condition or a command,
and `completion` says what may stand at a column; `texts` imports all these when they
are needed. All of it is pure.

The grammar, loosest binding first (the order of Python's own operators):

    set        = meet (("|" | ";") meet)*             either; ";" is what `fold` prints
    meet       = difference ("&" difference)*         both
    difference = term ("-" term)*                     the first without the rest
    term       = "~" term | "(" set ")" | atom        "~": every other rank of the session
    atom       = "all" | STATE | "@" NAME | list | "ranks" "(" [indices | dims] ")"
               | NAME ":" (list | "all" | STATE)      in that group only
               | NAME "." "ranks" "(" [indices | dims] ")"
    list       = piece ("," piece)*                   0-7,12
    piece      = INT | INT "-" INT                    0-3 has both ends, and no spaces
    indices    = index ("," index)*
    index      = piece | [INT] ":" [INT] [":" [INT]]  half-open, as in Python
    dims       = dim ("," dim)*                       any subset of the mesh's dimensions
    dim        = NAME "=" (index | "(" index ("," index)* ")")

**The minus sign.** Between two numbers without spaces it makes a range: `0-3`. Anywhere
else it is a difference: `all - 0-3`, and `5 - 3` is rank 5 without rank 3. A list binds
tighter than any operator: `all - 0-3,7` leaves out all of `0-3,7`. Names may hold hyphens
(`my-job:0`, `@slow-ones`), so put spaces around the minus that follows or precedes a name.

**Groups.** Numbers and dimensions without a group's name are of the only group there is, or
of the world's default group. `all`, states and `~` span every group.

**Ranks that are not there.** A rank named by its number must exist: `ranks(9)` of four ranks
is an error, and so is `tp=7` of a dimension of four. Ranges and slices clip, as Python's
do: `0-7` and `ranks(2:)` select what there is of them, perhaps nothing. Where ranks may
still come, as in breakpoints, `select(world, strict=False)` passes over absent ranks and
groups; unknown names and dimensions are errors even then.

Every mistake is a `RankSetError` that points at the column.
"""

from __future__ import annotations

from dap_mux.pure.rank_sets.texts import (
    complete,
    is_name,
    parse,
    split_condition,
    split_leading,
    split_prefix,
    substitute,
    with_group,
)
from dap_mux.pure.rank_sets.tokens import RankSetError, UnknownDimension
from dap_mux.pure.rank_sets.world import STATES, Mesh, RankId, RankSet, World, fold, name_ranks

__all__ = [
    "STATES",
    "Mesh",
    "RankId",
    "RankSet",
    "RankSetError",
    "UnknownDimension",
    "World",
    "complete",
    "fold",
    "is_name",
    "name_ranks",
    "parse",
    "split_condition",
    "split_leading",
    "split_prefix",
    "substitute",
    "with_group",
]
