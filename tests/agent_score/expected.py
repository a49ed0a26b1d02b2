"""The planted bugs, and what a finder has to name: the ranks at fault, a marked line, the cause."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, NamedTuple

PROGRAMS: Final = Path(__file__).parent / "bugs"
RANKS: Final = 8
MARK: Final = "  # BUG"

CAUSES: Final = (
    "wrong data",
    "missed sync",
    "mismatched collective",
    "lock",
    "uneven batches",
    "nan",
    "dead worker",
    "slow rank",
    "swallowed exception",
    "exception",
    "early exit",
    "other wait",
    "deadlock of messages",
    "stale value",
)


class Bug(NamedTuple):
    """One program of `bugs`."""

    name: str
    symptom: Literal["hang", "wrong", "crash", "slow"]
    ranks: str  # a rank set, or all
    cause: str  # one of CAUSES
    launcher: Literal["python", "torchrun"]
    watch: str = ""  # what a user of a wrong program would look at
    at: str = ""
    """The text of the line where it can be seen. Not one with a comprehension: debugpy stops in
    each of its rounds, so a rank that is let go comes to no other line for thousands of them."""
    late: int = 0  # the round of those that were written after the rules of the finder

    @property
    def path(self) -> Path:
        """Its program."""
        return PROGRAMS / f"{self.name}.py"

    @property
    def lines(self) -> list[int]:
        """The lines that may be named as the one at fault."""
        lines = self.path.read_text("utf-8").splitlines()
        return [number for number, line in enumerate(lines, 1) if line.endswith(MARK)]


BUGS: Final = (
    # What ranks say to each other, over sockets.
    Bug("halo_exchange", "hang", "all", "deadlock of messages", "python"),
    Bug("checkpoint_by_zero", "hang", "0", "mismatched collective", "python"),
    Bug("early_stopping", "hang", "6", "early exit", "python"),
    Bug("uneven_files", "hang", "7", "uneven batches", "python"),
    Bug("lock_over_barrier", "hang", "3", "lock", "python"),
    Bug("empty_prefetch", "hang", "1", "other wait", "python"),
    Bug("pool_worker_exits", "hang", "5", "dead worker", "python"),
    Bug("swallowed_parse_error", "hang", "3", "swallowed exception", "python"),
    Bug("missing_column", "crash", "4", "exception", "python"),
    Bug("odd_even_sort", "hang", "7", "deadlock of messages", "python"),
    Bug(
        *("repeated_streams", "wrong", "4-7", "wrong data", "python"),
        watch="subtotal",
        at="estimate.add(*comm.allreduce(",
    ),
    Bug(
        *("config_not_to_last", "wrong", "7", "stale value", "python"),
        watch="settings.rate",
        at="model.apply(mean, settings.rate)",
    ),
    Bug(
        *("first_weights_differ", "wrong", "all", "missed sync", "python"),
        watch="network.parameters[0]",
        at="network.descend(mean)",
    ),
    Bug(
        *("nan_reading", "wrong", "2", "nan", "python"),
        watch="local",
        at="wind = sum(winds(text)) / ROWS",
    ),
    Bug("cache_too_small", "slow", "5", "slow rank", "python"),
    Bug("dead_mirror", "slow", "2", "slow rank", "python"),
    Bug("resume_where_exists", "hang", "4", "mismatched collective", "python"),
    Bug("metric_of_some", "hang", "1", "mismatched collective", "python"),
    Bug(
        *("order_of_a_set", "wrong", "all", "mismatched collective", "python"),
        watch="names",
        at="total = comm.allreduce(flat)",
    ),
    Bug(
        *("older_checkpoint", "wrong", "5", "stale value", "python"),
        watch="step",
        at="energy = comm.allreduce([kinetic",
    ),
    Bug(
        *("shifted_labels", "wrong", "6", "wrong data", "python"),
        watch="loss",
        at="total = comm.allreduce([loss, *gradient])",
    ),
    Bug("two_locks", "hang", "6", "lock", "python"),
    Bug("lost_task", "hang", "4", "swallowed exception", "python"),
    Bug("nothing_to_do", "crash", "2", "early exit", "python"),
    # torch, over Gloo.
    Bug(
        *("no_sync_never_left", "wrong", "all", "missed sync", "torchrun"),
        watch="norm",
        at="if rank == 0 and step % 10 == 0:",
    ),
    Bug("odd_micro_batches", "hang", "4", "missed sync", "torchrun"),
    Bug("skipped_batch", "hang", "5", "early exit", "torchrun"),
    Bug("uneven_evaluation", "hang", "7", "uneven batches", "torchrun"),
    Bug(
        *("overflow_skips_all", "wrong", "3", "nan", "torchrun"),
        watch="loss.item()",
        at="optimizer.zero_grad()",
    ),
    Bug(
        *("local_plateau", "wrong", "4", "missed sync", "torchrun"),
        watch="rate",
        at="if self.rank == 0:",
    ),
    Bug("key_nobody_sets", "hang", "2", "other wait", "torchrun"),
    Bug("pipeline_counts", "hang", "7", "deadlock of messages", "torchrun"),
    Bug("loader_worker_exits", "crash", "1", "dead worker", "torchrun"),
    Bug("unused_expert", "hang", "6", "mismatched collective", "torchrun", late=1),
    Bug("ragged_gather", "crash", "7", "mismatched collective", "torchrun", late=1),
    Bug("barrier_without_group", "hang", "6-7", "mismatched collective", "torchrun", late=1),
    Bug(
        *("channel_order", "wrong", "1", "wrong data", "torchrun"),
        watch="(10 * images.mean((0, 2, 3))).int().tolist()",
        at="loss = (model(images) - red).square().mean()",
        late=1,
    ),
    Bug("slow_collate", "slow", "6", "slow rank", "torchrun", late=1),
    Bug("full_queue", "hang", "4", "dead worker", "torchrun", late=2),
    Bug("barrier_in_finally", "hang", "6", "swallowed exception", "torchrun", late=2),
    Bug(
        *("adapter_after_wrapping", "wrong", "all", "missed sync", "torchrun"),
        watch="adapted",
        at="if rank == 0 and step % 10 == 0:",
        late=2,
    ),
    Bug("copied_history", "slow", "3", "slow rank", "torchrun", late=2),
    Bug("new_words", "crash", "5", "exception", "torchrun", late=2),
)
