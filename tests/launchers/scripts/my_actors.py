"""The actor of Monarch's page, its lines where they are there: the call on 16, `def` on 20."""

import random

from monarch.actor import Actor, current_rank, endpoint


class DebugeeActor(Actor):
    """As on the page."""

    # Its lines are the page's.
    @endpoint
    async def to_debug(self) -> int:
        rank = current_rank().rank
        breakpoint()  # noqa: T100
        rank = inner_function(rank)
        return rank + 1


def inner_function(rank: int) -> int:
    x = random.randint(0, 1000)
    return rank + x
