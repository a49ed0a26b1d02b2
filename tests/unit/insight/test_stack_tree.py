"""Stacks of many ranks as prefix trees, beside a plain reference."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.insight.stack_tree import Branch, Frame, Stack, agreed, merge
from dap_mux.pure.rank_sets import RankId

MAIN, TRAIN, LOAD, WAIT = (
    Frame("a.py", name, line) for line, name in enumerate(("m", "t", "l", "w"), 1)
)
FRAMES = st.sampled_from([MAIN, TRAIN, LOAD, WAIT])
STACKS = st.lists(FRAMES, min_size=1, max_size=5).map(tuple)


def job(*ranks: int) -> tuple[RankId, ...]:
    return tuple(("job", rank) for rank in ranks)


def test_ranks_share_a_branch_until_they_part() -> None:
    stacks = [(rank, (MAIN, TRAIN, LOAD if rank == ("job", 1) else WAIT)) for rank in job(0, 1, 2)]
    (tree,) = merge(stacks)
    assert tree == Branch(
        (MAIN, TRAIN),
        job(0, 1, 2),
        (),
        (Branch((WAIT,), job(0, 2), job(0, 2)), Branch((LOAD,), job(1), job(1))),
    )


def test_a_rank_may_end_where_others_go_on() -> None:
    (tree,) = merge([(("job", 0), (MAIN,)), (("job", 1), (MAIN, TRAIN))])
    assert (tree.frames, tree.ends) == ((MAIN,), job(0))
    assert tree.branches == (Branch((TRAIN,), job(1), job(1)),)


def test_several_threads_of_a_rank_name_it_once() -> None:
    (tree,) = merge([(("job", 0), (MAIN, WAIT)), (("job", 0), (MAIN, WAIT))])
    assert (tree.ranks, tree.ends) == (job(0), job(0))


def test_no_ranks_no_branches() -> None:
    assert merge([]) == ()


@given(st.lists(STACKS, max_size=8))
def test_every_prefix_has_the_ranks_that_a_reference_finds(stacks: list[Stack]) -> None:
    """The reference: for each prefix of any stack, look at every rank."""
    told = [(("job", rank), stack) for rank, stack in enumerate(stacks)]
    prefixes = {stack[:end] for stack in stacks for end in range(1, len(stack) + 1)}
    wanted = {
        prefix: (
            tuple(rank for rank, stack in told if stack[: len(prefix)] == prefix),
            tuple(rank for rank, stack in told if stack == prefix),
        )
        for prefix in prefixes
    }
    assert dict(every_prefix(merge(told), ())) == wanted


def every_prefix(
    branches: tuple[Branch, ...], above: Stack
) -> Iterator[tuple[Stack, tuple[tuple[RankId, ...], tuple[RankId, ...]]]]:
    for branch in branches:
        for end in range(1, len(branch.frames) + 1):
            ends = branch.ends if end == len(branch.frames) else ()
            yield above + branch.frames[:end], (branch.ranks, ends)
        yield from every_prefix(branch.branches, above + branch.frames)


class TestLooks:
    """Looks at one thread from outside."""

    def test_two_of_three_agree(self) -> None:
        torn = (MAIN, LOAD, LOAD, WAIT)
        assert agreed([(MAIN, TRAIN, WAIT), torn, (MAIN, TRAIN, WAIT)]) == (MAIN, TRAIN, WAIT)

    def test_as_far_as_they_do(self) -> None:
        assert agreed([(MAIN, TRAIN, WAIT), (MAIN, TRAIN, LOAD), (MAIN, WAIT)]) == (MAIN, TRAIN)

    def test_one_is_none(self) -> None:
        assert agreed([(MAIN, TRAIN)]) == agreed([]) == ()

    @given(st.lists(STACKS, min_size=2, max_size=4))
    def test_as_a_reference_has_it(self, looks: list[Stack]) -> None:
        found = agreed(looks)
        assert sum(look[: len(found)] == found for look in looks) >= 2
        longer = {look[: len(found) + 1] for look in looks if len(look) > len(found)}
        assert all(sum(look[: len(one)] == one for look in looks) < 2 for one in longer)
