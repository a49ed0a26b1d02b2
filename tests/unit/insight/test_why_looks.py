"""Rules of `why` that compare looks: slow or hanging, and when to look again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from dap_mux.pure.insight.why.evidence import (
    Call,
    Collective,
    Process,
    RankEvidence,
    Standing,
    continued,
)
from dap_mux.pure.insight.why.verdicts import is_doubtful, judge
from tests.unit.insight.judging import evidence, named, verdict
from tests.unit.insight.test_why_rules import C10D, accused, at, in_torch, sample


def changed(of: RankEvidence, **each: Sequence[object]) -> RankEvidence:
    """A rank whose main thread has something else, one by one at each look."""
    changes = [dict(zip(each, values, strict=True)) for values in zip(*each.values(), strict=True)]
    pairs = zip(of.samples, changes, strict=True)
    looks = [replace(one, threads=[replace(one.threads[0], **to)]) for one, to in pairs]
    return RankEvidence(of.rank, of.standing, looks)


class TestSlowOrHanging:
    """What changes from look to look."""

    def sleeps(self, *progress: str, cpu: float = 0.0) -> RankEvidence:
        """A rank that is asleep at one line at each look, and has been awake in between."""
        looks = [
            sample(
                [("/job/train.py", "evaluate", 31)],
                state="S",
                progress=each,
                switches=number,
                cpu=cpu * number,
                call=Call("time.sleep(0.05)", "time.sleep"),
            )
            for number, each in enumerate(progress)
        ]
        return RankEvidence(("job", 0), Standing(), looks)

    def test_a_rank_that_counts_on_is_not_called_absent(self) -> None:
        found = verdict(self.sleeps("a", "b", "c"), in_torch("broadcast"), in_torch("broadcast"))
        assert found.name == "healthy"

    def test_a_rank_that_counts_on_and_waits_for_a_processor_in_between(self) -> None:
        """Where a machine has too much to do, it seldom sleeps when it is looked at."""
        counting = self.sleeps("a", "b", "c")
        others = [in_torch("broadcast")] * 2
        assert verdict(changed(counting, state="RSR"), *others).name == "healthy"
        first = evidence(changed(counting, state="RRR"), *others)
        assert judge(first).name == "slow-rank"
        assert is_doubtful(judge(first), first)

    def test_a_rank_that_could_run_when_it_was_looked_at_but_naps_in_between(self) -> None:
        """As where a debugger asks it: a loop with `sleep(0.01)` that waits for an ended rank."""
        polling = changed(self.sleeps("a", "a", "a"), state="RRR", switches=(0, 30, 60))
        gone = RankEvidence(("job", 0), Standing("exited"))
        assert named(verdict(polling, gone)) == ("process-gone", "1")

    def test_a_rank_that_only_looks_again_is_absent(self) -> None:
        found = verdict(self.sleeps("a", "a", "a"), in_torch("broadcast"), in_torch("broadcast"))
        assert named(found) == ("not-joined", "0")

    def test_where_most_look_again_and_again_the_few_have_left_them(self) -> None:
        """A reader that raises, and goes on to the next collective, has not released its slot."""
        polling = changed(self.sleeps("a", "a", "a"), switches=(0, 30, 60))
        found = verdict(polling, in_torch("all_reduce"), polling)
        assert (found.name, accused(found)[0]) == ("not-joined", 1)
        assert "the others poll for something at" in found.sentence
        found = verdict(polling, in_torch("all_reduce"), in_torch("all_reduce"), polling)
        assert (found.name, accused(found)[0]) == ("not-joined", 0), "not the few"

    def test_a_rank_of_which_no_number_is_known_is_absent(self) -> None:
        found = verdict(self.sleeps("", "", ""), in_torch("broadcast"), in_torch("broadcast"))
        assert named(found) == ("not-joined", "0")

    def test_a_rank_at_work_is_slow_and_says_how_much_it_uses(self) -> None:
        slow = self.sleeps("a", "b", "c", cpu=0.3)
        used = [Process(1, "R", cpu=0.9 * at, at=1.0 * at) for at in range(3)]
        slow = RankEvidence(slow.rank, slow.standing, slow.samples, used)
        found = verdict(slow, in_torch("broadcast"), in_torch("broadcast"))
        assert named(found) == ("slow-rank", "0")
        assert "it is busy: it uses 90% of a processor" in found.evidence

    def test_a_rank_that_gets_little_of_a_processor_is_slow(self) -> None:
        """It wants to run at each look, on a machine with more to do."""
        slow = changed(self.sleeps("a", "b", "c"), state="RRR")
        found = verdict(slow, in_torch("broadcast"), in_torch("broadcast"))
        assert named(found) == ("slow-rank", "0")
        assert (
            "it is busy, and gets 0% of a processor: its machine has more to do" in found.evidence
        )

    def test_an_ended_rank_for_which_the_others_look(self) -> None:
        gone = RankEvidence(("job", 0), Standing("exited"))
        polls = self.sleeps("a", "a", "a")
        assert named(verdict(polls, polls, gone)) == ("process-gone", "2")

    def test_an_ended_rank_keeps_nobody_who_works(self) -> None:
        gone = RankEvidence(("job", 0), Standing("exited"))
        assert verdict(self.sleeps("a", "b", "c"), gone).name == "healthy"


class TestAnotherLook:
    """What stood still for less than a second is looked at again, before it is accused."""

    def of(self, line: int, age: float) -> RankEvidence:
        entry = Collective("default_pg", 5, "all_reduce", [0, 1], age=age)
        return at(line, (C10D, "all_reduce", 9), call=Call("w.wait()"), collectives=[entry])

    @pytest.mark.parametrize(("age", "doubtful"), [(0.5, True), (30.0, False)])
    def test_only_where_nobody_has_waited_for_long(self, age: float, doubtful: bool) -> None:
        first = evidence(self.of(7, age), at(3))
        assert judge(first).name == "not-joined"
        assert is_doubtful(judge(first), first) is doubtful

    def test_a_lock_that_somebody_in_c_keeps_for_a_while(self) -> None:
        """A rank whose garbage is collected says nothing meanwhile, and answers later."""
        looks = [Process(7, "S", switches={1: n, 2: n}, at=n / 200) for n in (0, 120)]
        silent = RankEvidence(("job", 1), Standing(problem="no answer"), (), looks)
        first = evidence(self.of(7, 30.0), silent)
        assert judge(first).name == "gil-held"
        assert is_doubtful(judge(first), first)
        later = evidence(*(RankEvidence(one.rank, samples=at(3).samples[:1]) for one in first))
        assert judge(continued(first, later, 2.5)).name in ("healthy", "undecided")

    def test_a_jobs_beginning_is_looked_at_again(self) -> None:
        joins = [in_torch("init_process_group", rank=rank) for rank in (0, 1, 1)]
        assert is_doubtful(verdict(*joins), evidence(*joins))

    def test_a_job_that_has_moved_on_is_healthy(self) -> None:
        first = evidence(self.of(7, 0.5), at(3))
        later = evidence(
            RankEvidence(("job", 0), samples=[at(3).samples[0]]),
            RankEvidence(("job", 1), samples=[self.of(7, 0.1).samples[0]]),
        )
        assert judge(continued(first, later, 2.5)).name == "healthy"

    def test_a_job_that_has_not_is_accused_still(self) -> None:
        first = evidence(self.of(7, 0.5), at(3))
        later = evidence(*(RankEvidence(one.rank, samples=one.samples[:1]) for one in first))
        both = continued(first, later, 2.5)
        assert [len(one.samples) for one in both] == [4, 4]
        assert judge(both).name == "not-joined"
        assert both.interval == pytest.approx((2 * 0.3 + 2.5) / 3)
