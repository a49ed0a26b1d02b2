"""The actor of Monarch's page, its lines where they are there: the call on 16, `def` on 20."""

import os
import random


class DebugeeActor:
    """Like the page's, without Monarch."""

    def to_debug(self) -> int:
        """What there is an endpoint."""
        rank = int(os.environ["RANK"])

        breakpoint()  # noqa: T100

        rank = inner_function(rank)
        return rank + 1


def inner_function(rank: int) -> int:
    x = random.randint(0, 1000)
    return rank + x


DebugeeActor().to_debug()
