"""Where replicas and runs part, by small traces made here."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.numerics.diverge import Divergence, first_divergence
from dap_mux.pure.insight.numerics.diverge_replicas import Replicas
from dap_mux.pure.insight.numerics.diverge_runs import aligned, first_parting
from dap_mux.pure.insight.numerics.diverge_trace import RankTrace, lines_of

Line = dict[str, Any]


def op(line: int, name: str, inputs: str, outputs: str, **more: Any) -> Line:
    """An operation at a line of train.py; values are words."""
    return {
        "kind": "op", "name": f"aten.{name}.default", "place": f"train.py:{line} f",
        "inputs": inputs.split(), "outputs": outputs.split(), **more,
    }  # fmt: skip


def call(line: int, number: int, inputs: str, outputs: str, group: str = "0") -> Line:
    """An all_reduce."""
    return {
        "kind": "call", "name": "all_reduce", "group": group, "number": number, "shape": [4],
        "place": f"train.py:{line} f", "inputs": inputs.split(), "outputs": outputs.split(),
    }  # fmt: skip


def step(number: int, gradients: Line, after: Line, calls: int = 0, **more: Any) -> Line:
    """An optimizer's step, at line 90."""
    return {
        "kind": "step", "number": number, "optimizer": "SGD", "place": "train.py:90 f",
        "gradients": gradients, "after": after, "calls": {"0": calls}, **more,
    }  # fmt: skip


def trace(rank: int, *lines: Line) -> RankTrace:
    """A rank's, with the line that each begins with."""
    text = "".join(json.dumps(each) + "\n" for each in ({"kind": "head", "rank": rank}, *lines))
    return RankTrace(rank, lines_of(text.encode(), "rank.jsonl"))


def divergence(traces: Sequence[RankTrace]) -> Divergence:
    """The first one, which there is."""
    found = first_divergence(Replicas(traces))
    assert found is not None
    return found


def traces(lines: Callable[[int], list[Line]], ranks: int = 2) -> list[RankTrace]:
    """Those of some ranks."""
    return [trace(rank, *lines(rank)) for rank in range(ranks)]


def parted(lines: Callable[[int], list[Line]], ranks: int = 2) -> Divergence:
    """The first divergence of ranks that have these lines."""
    return divergence(traces(lines, ranks))


BEGIN: Line = {"before": {"w": "w0", "v": "v0"}}


def test_a_gradient_that_is_not_exchanged_is_named_with_where_the_others_are() -> None:
    found = parted(
        lambda rank: [
            op(10, "mm", f"x{rank} w0", f"gw{rank}"),
            op(11, "mm", f"x{rank} v0", f"gv{rank}"),
            call(20, 1, f"gw{rank}", "gw"),
            step(0, {"w": "gw", "v": f"gv{rank}"}, {"w": "w1", "v": f"v1-{rank}"}, 1, **BEGIN),
        ],
    )
    assert (found.kind, found.step, found.tensor) == ("not-exchanged", 0, "v")
    assert (found.ranks, found.others) == ([1], [0])
    assert (found.place, found.also) == ("train.py:20 f", "train.py:11 f")


def test_a_factor_of_the_ranks_own_after_the_exchange_is_the_line() -> None:
    found = parted(
        lambda rank: [
            call(20, 1, f"g{rank}", "g"),
            step(0, {"w": "g"}, {"w": "w1"}, 1, before={"w": "w0"}),
            call(20, 2, f"h{rank}", "h"),
            op(21, "mul_", "h", f"h-{rank // 2}", arguments=str(rank // 2)),
            step(1, {"w": f"h-{rank // 2}"}, {"w": f"w2-{rank // 2}"}, 2),
        ],
        ranks=3,
    )
    assert (found.kind, found.step, found.ranks) == ("gradient", 1, [2])
    assert found.place == "train.py:21 f"
    assert found.evidence == [
        "rank 0: mul_(0) at train.py:21 f",
        "rank 2: mul_(1) at train.py:21 f",
    ]


def test_a_mean_of_what_was_gathered_is_an_exchange_and_a_value_of_ones_own_in_it_is_named() -> (
    None
):
    own = {0: "g0 h1", 1: "h0 g1"}  # the others' were rounded on their way
    found = parted(
        lambda rank: [
            op(10, "mm", f"x{rank} w0", f"g{rank}"),
            op(20, "_to_copy", f"g{rank}", f"s{rank}"),
            {**call(21, 1, f"s{rank}", "s0 s1"), "name": "all_gather"},
            op(22, "_to_copy", f"s{1 - rank}", f"h{1 - rank}"),
            op(23, "stack", own[rank], f"pile{rank}"),
            op(24, "mean", f"pile{rank}", f"m{rank}"),
            step(0, {"w": f"m{rank}"}, {"w": f"w1-{rank}"}, 1, before={"w": "w0"}),
        ],
    )
    assert (found.sentence, found.ranks, found.place) == (
        "the gradient of w differs, though it has been exchanged",
        [1],
        "train.py:23 f",
    )


def test_an_update_of_equal_gradients_that_differs_is_the_optimizers() -> None:
    found = parted(
        lambda rank: [
            op(90, "add_", "w0 g", f"w1-{rank}", arguments=f"lr {rank}"),
            step(0, {"w": "g"}, {"w": f"w1-{rank}"}, before={"w": "w0"}),
        ],
    )
    assert (found.kind, found.place, found.next) == ("update", "train.py:90 f", "")
    without = parted(lambda rank: [step(0, {"w": "g"}, {"w": f"w1-{rank}"}, before={"w": "w0"})])
    assert without.next == "run it again with --locate, which names the line"


def test_a_step_that_one_rank_leaves_out_is_said_to_be_that() -> None:
    made = [
        step(number, {"w": f"g{number}"}, {"w": f"w{number}"}, number) for number in range(1, 5)
    ]
    other = [made[0], {**made[2], "after": {"w": "other"}}, {**made[3], "after": {"w": "else"}}]
    found = divergence([trace(0, *made), trace(1, *other)])
    assert (found.kind, found.ranks, found.place) == ("steps", [1], "train.py:90 f")


def test_gradients_added_up_in_parts_of_the_job_only_are_the_calls_fault() -> None:
    found = parted(
        lambda rank: [
            {"kind": "group", "name": str(rank // 2), "ranks": [rank // 2 * 2, rank // 2 * 2 + 1]},
            call(20, 1, f"g{rank}", f"g-{rank // 2}", group=str(rank // 2)),
            step(0, {"w": f"g-{rank // 2}"}, {"w": f"w1-{rank // 2}"}, before={"w": "w0"}),
        ],
        ranks=4,
    )
    assert (found.kind, found.ranks, found.place) == ("other-call", [2, 3], "train.py:20 f")


def test_gradients_that_travel_in_a_bucket_are_exchanged() -> None:
    found = parted(
        lambda rank: [
            op(18, "cat", f"gw{rank}", f"flat{rank}"),
            call(20, 1, f"flat{rank}", "flat"),
            op(21, "slice", "flat", "gw"),
            op(21, "copy_", f"gw{rank} gw", "gw"),
            step(0, {"w": "gw", "v": f"gv{rank}"}, {"w": "w1", "v": f"v1-{rank}"}, 1, **BEGIN),
        ],
    )
    assert (found.kind, found.tensor, found.place) == ("not-exchanged", "v", "train.py:20 f")


def test_shards_of_one_seed_in_a_job_of_two_dimensions_differ_by_design() -> None:
    """Ranks 0 and 3 share no group; 0 sends activations to 1, and 1 its gradients to 3."""
    ranks = traces(
        lambda rank: [
            {
                "kind": "group",
                "name": f"tp{rank // 2}",
                "ranks": [rank // 2 * 2, rank // 2 * 2 + 1],
            },
            {"kind": "group", "name": f"dp{rank % 2}", "ranks": [rank % 2, rank % 2 + 2]},
            call(10, 1, f"p{rank}", f"s{rank // 2}", group=f"tp{rank // 2}"),
            call(20, 1, f"g{rank}", f"g-{rank % 2}", group=f"dp{rank % 2}"),
            step(0, {"w": f"g-{rank % 2}"}, {"w": f"w1-{rank % 2}"}, before={"w": "w0"}),
        ],
        ranks=4,
    )
    assert first_divergence(Replicas(ranks)) is None


def test_what_ddp_ignores_and_what_is_averaged_now_and_then_differ_by_design() -> None:
    ignored = traces(
        lambda rank: [
            call(20, 1, f"gw{rank}", "gw"),
            step(
                0,
                {"w": "gw", "v": f"gv{rank}"},
                {"w": "w1", "v": f"v1-{rank}"},
                groups={"w": "0", "v": ""},
                **BEGIN,
            ),
        ],
    )
    averaged = traces(
        lambda rank: [
            call(5, 1, f"i{rank}", "w0"),
            step(0, {"w": f"g{rank}"}, {"w": f"w1-{rank}"}, before={"w": "w0"}),
            call(30, 2, f"flat{rank}", "flat"),
        ],
    )
    for ranks in (ignored, averaged):
        assert first_divergence(Replicas(ranks)) is None


def test_chance_in_what_tensor_parallel_ranks_have_in_common_is_named() -> None:
    found = parted(
        lambda rank: [
            op(10, "native_layer_norm", "x n0", "y"),
            op(11, "mm", f"y w{rank}", f"p{rank}"),
            call(12, 1, f"p{rank}", "s"),
            op(13, "bernoulli", "s", f"d{rank}", random=True),
            op(14, "norm_backward", f"d{rank} x", f"g{rank}", forward="train.py:10 f"),
            step(0, {"n": f"g{rank}"}, {"n": f"n1-{rank}"}, before={"n": "n0", "w": f"w{rank}"}),
        ],
    )
    assert (found.kind, found.tensor, found.place) == ("gradient", "n", "train.py:13 f")


def test_a_parameter_that_one_optimizer_does_not_have_is_named() -> None:
    group = {"kind": "group", "name": "0", "ranks": [0, 1]}
    ranks = [
        trace(
            rank,
            group,
            step(
                0,
                dict.fromkeys(names, "g"),
                dict.fromkeys(names, "w1"),
                before=dict.fromkeys(names, "w0"),
                groups=dict.fromkeys(names, "0"),
            ),
        )
        for rank, names in enumerate(["wv", "w"])
    ]
    found = divergence(ranks)
    assert (found.kind, found.ranks, found.tensor) == ("left-out", [1], "v")


@pytest.mark.parametrize(
    ("before", "gradients"),
    [
        pytest.param("a b", "g h", id="other parameters, as a pipeline's stages have"),
        pytest.param("a a", "g h", id="equal at first, exchanged by nobody: shards of one seed"),
        pytest.param("a a", "0 0", id="no gradient at all"),
    ],
)
def test_what_differs_by_design_is_no_divergence(before: str, gradients: str) -> None:
    ranks = [
        trace(rank, step(0, {"w": gradient}, {"w": f"w{rank}"}, before={"w": value}))
        for rank, (value, gradient) in enumerate(
            zip(before.split(), gradients.split(), strict=True)
        )
    ]
    replicas = Replicas(ranks)
    assert first_divergence(replicas) is None
    assert replicas.count == 0


def test_runs_part_at_the_first_line_that_computes_another_value() -> None:
    first = [op(1, "randn", "", "x"), op(2, "mm", "x w", "y"), op(3, "relu", "y", "z")]
    second = [
        op(1, "randn", "", "x"),
        op(2, "norm", "x", "n"),  # a line more, which changes nothing
        op(3, "mm", "x w", "y"),
        op(4, "relu", "y", "other", arguments="1"),
    ]
    found = first_parting([trace(0, *first)], [trace(0, *second)])
    assert found is not None
    assert (found.place, found.other, found.step) == ("train.py:3 f", "train.py:4 f", 0)
    assert found.equal == "mm() at train.py:2 f"
    assert found.sentence == "values differ by what is computed here"
    assert first_parting([trace(0, *first)], [trace(0, *first)]) is None


def test_hashes_of_different_parts_of_a_parameter_say_nothing() -> None:
    def run(after: str) -> RankTrace:
        return trace(0, step(0, {"w": "gw"}, {"w": after}))

    assert first_parting([run("3~a")], [run("4~b")]) is None
    parting = first_parting([run("3~a")], [run("3~b")])
    assert parting is not None
    assert "w in the SGD step" in parting.sentence


def test_a_line_of_one_run_alone_is_named_if_what_it_computes_is_used() -> None:
    first = [op(1, "mm", "x w", "y"), op(2, "relu", "y", "z"), op(3, "sum", "z", "s")]
    second = [
        op(1, "mm", "x w", "y"),
        op(2, "_to_copy", "y", "half"),
        op(2, "relu", "half", "z2"),
        op(3, "sum", "z2", "s2"),
    ]
    found = first_parting([trace(0, *first)], [trace(0, *second)])
    assert found is not None
    assert (found.place, found.other) == ("", "train.py:2 f")
    assert found.evidence[0] == "second run: _to_copy() at train.py:2 f"


def test_sequences_are_aligned_over_what_one_has_more() -> None:
    pairs = [*aligned("abcdefgh", "abXcdefgYh")]
    assert [each for each in pairs if None in each] == [(None, 2), (None, 8)]
    assert len([each for each in pairs if None not in each]) == 8


def test_a_torn_last_line_is_left_out_and_any_other_is_refused() -> None:
    head = b'{"kind": "head", "rank": 0}\n'
    assert len(lines_of(head + b'{"kind": "st', "a")) == 1
    with pytest.raises(DapMuxError, match="a:2: no line of a trace"):
        lines_of(head + b"[]\n" + head, "a")
    with pytest.raises(DapMuxError, match="a: no trace"):
        lines_of(b"", "a")


def test_what_is_done_to_a_parameter_between_steps_is_where_a_ranks_own_value_came_in() -> None:
    found = parted(
        lambda rank: [
            step(0, {"w": "g"}, {"w": "w1"}, before={"w": "w0"}),
            op(30, "randint", "", f"x{rank}", random=True),
            op(31, "unique", f"x{rank}", f"u{rank}"),
            op(32, "index_put_", f"w1 u{rank}", f"w1-{rank}"),
            step(1, {"w": "h"}, {"w": f"w2-{rank}"}, before={"w": f"w1-{rank}"}),
        ],
    )
    assert (found.kind, found.step) == ("between", 0)
    assert (found.place, found.also) == ("train.py:32 f", "train.py:30 f")


def test_a_share_of_the_parameters_that_is_not_sent_on_is_named() -> None:
    ranks = [
        trace(0, step(0, {}, {"v": "v1"}, before={"v": "v0"}), call(40, 1, "v1", "v1")),
        trace(1, step(0, {}, {"w": "w1"}, before={"w": "w0"}), call(40, 1, "", "v1")),
    ]
    found = divergence(ranks)
    assert (found.kind, found.ranks, found.tensor) == ("not-sent", [1], "w")
    assert (found.place, found.also) == ("train.py:40 f", "train.py:90 f")


def test_a_rank_with_another_shard_has_left_none_out() -> None:
    """As FSDP2 with tensor parallelism has them: the same norms in two ranks, other shards."""
    ranks = traces(
        lambda rank: [
            {"kind": "group", "name": "0", "ranks": [0, 1]},
            call(20, 1, f"g{rank}", "g"),
            step(0, {"v": "g", f"w@{rank}": "g"}, {"v": "v1", f"w@{rank}": f"w1-{rank}"}, 1),
        ],
    )
    assert first_divergence(Replicas(ranks)) is None


def said(number: int, **more: Line) -> Line:
    """A step after which parameters are equal."""
    return {**step(number, {"w": "gw"}, {"w": f"w{number + 1}"}, **BEGIN), **more}


def test_an_expression_that_is_said_to_be_equal_is_compared() -> None:
    """A difference of parameters that comes first, or with it, is named instead."""
    texts = ["a", "a", "b"]
    ranks = [
        trace(rank, said(0, equal={"lr": "a"}), said(1, equal={"lr": text}))
        for rank, text in enumerate(texts)
    ]
    found = divergence(ranks)
    assert (found.kind, found.step, found.tensor) == ("equal", 1, "lr")
    assert (found.ranks, found.others) == ([2], [0, 1])
    ranks[1].updates["w"][1].step.after["w"] = "w9"
    assert divergence(ranks).kind != "equal"


def test_an_expression_without_a_value_in_one_rank_differs_and_in_all_is_an_error() -> None:
    fails = {"failed": {"lr": "NameError: lr"}}
    found = divergence([trace(0, said(0, equal={"lr": "a"})), trace(1, said(0, **fails))])
    assert (found.ranks, found.evidence) == ([1], ["rank 1: NameError: lr"])
    later = said(1, failed={"x": "KeyError: 7"})
    with pytest.raises(DapMuxError, match=r"--equal lr: NameError: lr \(rank 0, at train.py:90 f"):
        first_divergence(Replicas([trace(rank, said(0, **fails), later) for rank in range(2)]))
    with pytest.raises(DapMuxError, match=r"--equal x: KeyError: 7 \(rank 0, at train.py:90 f"):
        first_divergence(
            Replicas([trace(rank, said(0, equal={"lr": "a"}, **fails), later) for rank in range(2)])
        )
