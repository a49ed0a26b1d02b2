"""`pathMappings`: where the user's files lie on each rank's host.

An entry is debugpy's `{"localRoot", "remoteRoot"}` with two keys more: `hosts` (names or glob
patterns) and `ranks` (a rank set) limit it to some ranks. `parse` reads what a user wrote,
`PathMap.for_rank` gives one rank's `RankPaths`: the plain list that its debugpy gets, and the
same translation for paths that we make up ourselves.

Which entry applies: the longest root wins, both ways; of equal local roots the one for `ranks`,
then the one for `hosts`, then the first. debugpy takes the first entry whose root the path begins
with (read in 1.8.22), so the plain list is in that order; and as it compares text, `/src` would
take in `/src2`, so its roots end with a slash.
"""

from __future__ import annotations

from dap_mux.pathmap.mapping import (
    HERE,
    BadMapping,
    Entry,
    PathMap,
    Place,
    RankPaths,
    is_windows,
    parse,
)

__all__ = ["HERE", "BadMapping", "Entry", "PathMap", "Place", "RankPaths", "is_windows", "parse"]
