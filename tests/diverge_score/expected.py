"""The programs, and what is right to say of each.

Lines that may be named end in `# BUG`: the fault itself and, where something is left out or is
wrong from the start, also the line where values first part because of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, NamedTuple

PROGRAMS: Final = Path(__file__).parent
ENVIRONMENT: Final = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(PROGRAMS)}
"""What a program needs beside torch: `common` and `tensor_parallel` are imported by these names."""
MARK: Final = "  # BUG"

Kind = Literal["replicas", "runs", "nan", "slow", "healthy"]
FOLDERS: Final[dict[Kind, str]] = {
    "replicas": "silent",
    "runs": "silent",
    "nan": "nan",
    "slow": "slow",
    "healthy": "healthy",
}


class Case(NamedTuple):
    """One program; that of a kind "runs" does it right with `--good`, at the same lines."""

    name: str
    kind: Kind
    nproc: int
    ranks: str  # those at fault, "" for all or not asked
    step: int | None  # the optimizer's, from 0, in which it first shows
    cause: str
    acceptable: Literal["line", "collective"] = "line"
    """Whether the answer is a line, or just as well the collective with the line that calls it."""
    equal: tuple[tuple[int, ...], ...] = ()
    """Ranks that should print the same sum, where that is not all of them."""
    after: bool = False  # it shows after the optimizer's `step()` has returned

    @property
    def path(self) -> Path:
        """Its program."""
        return PROGRAMS / FOLDERS[self.kind] / f"{self.name}.py"

    @property
    def lines(self) -> list[int]:
        """The lines that may be named."""
        lines = self.path.read_text("utf-8").splitlines()
        return [number for number, line in enumerate(lines, 1) if line.endswith(MARK)]

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that may be named: what comes after one may be counted with the next."""
        return () if self.step is None else (self.step, self.step + 1)[: 1 + self.after]

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The ranks that should print the same sum."""
        return self.equal or (tuple(range(self.nproc)),)


REPLICAS: Final = (
    Case(
        *("node_average", "replicas", 4, "", 0),
        "gradients are added up in the node's group twice, and never across nodes",
        "collective",
    ),
    Case(
        *("weights_in_buckets", "replicas", 2, "", 0),
        "gradients of biases and norms are left out of the all-reduce",
        "collective",
    ),
    Case(
        *("accumulate_over_epochs", "replicas", 2, "", 3),
        "from the second epoch on the optimizer's last micro-batch runs under no_sync",
        "collective",
    ),
    Case(
        *("small_machine", "replicas", 2, "1", 0),
        "rank 1's optimizer does not get the embedding",
    ),
    Case(
        *("scaled_rate", "replicas", 4, "", 0),
        "the learning rate is scaled by the rank, not by the number of ranks",
    ),
    Case(
        *("warm_up_by_samples", "replicas", 2, "1", 6),
        "the learning rate depends on how many samples this rank has seen; rank 1's batch is short",
    ),
    Case(
        *("clipped_shards", "replicas", 2, "", 0),
        "gradients are clipped by the norm of this rank's shards",
    ),
    Case(
        *("lookahead", "replicas", 2, "1", 7),
        "rank 0 alone updates the slow weights, which replace all ranks' parameters",
        after=True,
    ),
    Case(
        *("pretrained_weights", "replicas", 4, "2-3", 0),
        "the second group's weights come from its own first rank, which has not loaded any",
        "collective",
    ),
    Case(
        *("roll_back", "replicas", 2, "0", 12),
        "rank 0 alone goes back to the good state",
        after=True,
    ),
    Case(
        *("settings_of_node", "replicas", 2, "1", 0),
        "rank 1 has no file of settings, and decays no weights",
    ),
    Case(
        *("shrunk_embedding", "replicas", 2, "", 1),
        "each rank shrinks the vectors of the words in its own batch, in place",
        after=True,
    ),
    Case(
        *("column_layer", "replicas", 2, "", 0),
        "the gate's input is used without Copy, so its gradient is not added up over the ranks",
    ),
    Case(
        *("hybrid_shard", "replicas", 4, "", 0),
        "the head is sharded over its own pair only, and not replicated over both",
        "collective",
        ((0, 2), (1, 3)),
    ),
    Case(
        *("compressed_gradients", "replicas", 2, "", 0),
        "the own gradient is added up in float32, those of others in bfloat16",
    ),
    Case(
        *("resumed_momentum", "replicas", 2, "1", 8),
        "rank 0 alone loads the optimizer's momentum",
    ),
    Case(
        *("tied_stages", "replicas", 2, "", 0),
        "gradients of the tied copies are reduced to rank 0 only, not to both",
        "collective",
    ),
    Case(
        *("parallel_dropout", "replicas", 2, "", 0),
        "dropout of what all ranks hold has a seed of each rank's own",
    ),
    Case(
        *("schedule_at_save", "replicas", 2, "0", 6),
        "saving steps the schedule once more, on rank 0",
    ),
    Case(
        *("gradient_noise", "replicas", 2, "", 0),
        "noise is added after the average, from a seed of each rank's own",
    ),
    Case(
        *("partitioned_optimizer", "replicas", 4, "3", 0),
        "the last share's owner does not send what it has updated",
        "collective",
        after=True,
    ),
    Case(
        *("expert_router", "replicas", 4, "", 0),
        "the router is taken for an expert, and its gradient not averaged",
        "collective",
    ),
    Case(
        *("sequence_parallel_norm", "replicas", 2, "", 0),
        "the norm's gradients, of each rank's words only, are not added up",
        "collective",
    ),
    Case(
        *("grown_layer", "replicas", 2, "0", 8),
        "the new layer is drawn anew in each rank; rank 0 has drawn samples before",
        after=True,
    ),
    Case(
        *("lost_reduction", "replicas", 2, "", 0),
        "a gradient that is not contiguous is averaged in a copy, which is dropped",
        "collective",
    ),
)
RUNS: Final = (
    Case(
        *("evaluation_mode", "runs", 2, "0", 5),
        "rank 0 stays in evaluation mode after it has evaluated",
    ),
    Case(
        *("fresh_moments", "runs", 2, "", 8),
        "the optimizer's moments are not restored",
    ),
    Case(
        *("shard_of_node", "runs", 4, "2-3", 0),
        "shards go by the rank in the node, so both nodes read the same",
    ),
    Case(
        *("order_of_epochs", "runs", 2, "", 8),
        "the sampler is not told of the epoch, and repeats its order",
    ),
    Case(
        *("averaged_twice", "runs", 4, "", 0),
        "the loss is divided by the number of ranks, and DDP averages as well",
    ),
    Case(
        *("mean_of_means", "runs", 2, "", 0),
        "each micro-batch is averaged over its own number of tokens",
    ),
    Case(
        *("stale_bucket", "runs", 2, "", 0),
        "the bucket of the step before is sent",
        "collective",
    ),
    Case(
        *("cast_in_attention", "runs", 2, "", 0),
        "the second layer computes its softmax in bfloat16",
    ),
    Case(
        *("sees_the_future", "runs", 2, "", 0),
        "attention is not causal",
    ),
    Case(
        *("same_dropout", "runs", 2, "1", 0),
        "all ranks have the same seed for dropout",
    ),
    Case(
        *("untied_by_loading", "runs", 2, "", 0),
        "loading with assign unties the embedding and the output layer",
    ),
    Case(
        *("coarse_reduction", "runs", 4, "", 0),
        "gradients of the second block are reduced in bfloat16",
        "collective",
        ((0,), (1,), (2,), (3,)),
    ),
)
NAN: Final = (
    Case("log_of_zero", "nan", 4, "2", 4, "log of a chance that is 0"),
    Case("missing_reading", "nan", 2, "1", 6, "a reading in the data is nan"),
    Case("half_overflow", "nan", 4, "3", 7, "a square overflows in half precision"),
    Case("empty_batch", "nan", 2, "1", 8, "0 divided by 0: rank 1's batch is empty"),
    Case("root_of_zero", "nan", 2, "1", 5, "the gradient of a root at 0: two equal words"),
    Case("endless_rate", "nan", 2, "", 10, "division by 0 gives an infinite learning rate"),
    Case("attention_mask", "nan", 2, "0", 3, "softmax over words that are all masked"),
    Case("softplus_by_hand", "nan", 2, "1", 9, "exp overflows in a gradient written by hand"),
    Case("averaged_metrics", "nan", 4, "2", 6, "the mean of no samples, in a metric"),
    Case("rate_too_high", "nan", 2, "", None, "the learning rate makes training explode"),
    Case("label_weights", "nan", 2, "", 4, "division by how often an absent class was seen"),
    Case("constant_feature", "nan", 4, "3", 5, "division by a deviation that is 0"),
    Case("second_moment", "nan", 2, "", 0, "0 divided by 0, for words that never come"),
    Case("pipeline_gate", "nan", 2, "0", 10, "division by a temperature that has fallen to 0"),
    Case("mean_of_none", "nan", 4, "2", 7, "the mean of no boxes"),
    Case(
        "bf16_norms", "nan", 2, "1", 11, "the eighth power of an activation overflows in bfloat16"
    ),
)
SLOW: Final = (
    Case("slow_loader", "slow", 2, "1", None, "reading a sample takes long"),
    Case("collected_garbage", "slow", 4, "2", None, "garbage is collected after each step"),
    Case("metrics_lock", "slow", 2, "1", None, "waits for a lock that a thread holds to write"),
    Case("busy_host", "slow", 4, "3", None, "all that it computes takes longer: no processor"),
    Case("long_sentences", "slow", 4, "0", None, "its batches are longer"),
    Case("even_work", "slow", 4, "", None, ""),
)
HEALTHY: Final = (
    Case("autocast", "healthy", 2, "", None, ""),
    Case("dropout", "healthy", 2, "", None, ""),
    Case("batch_norm", "healthy", 2, "", None, ""),
    Case("uneven_join", "healthy", 2, "", None, ""),
    Case("accumulation", "healthy", 2, "", None, ""),
    Case("fully_sharded", "healthy", 4, "", None, "", equal=((0,), (1,), (2,), (3,))),
    Case("tensor_parallel_layer", "healthy", 2, "", None, ""),
    Case("two_stages", "healthy", 2, "", None, "", equal=((0,), (1,))),
    Case("adversaries", "healthy", 2, "", None, ""),
    Case("moving_average", "healthy", 2, "", None, ""),
    Case("lone_evaluation", "healthy", 2, "", None, ""),
    Case("rates_by_group", "healthy", 2, "", None, ""),
    Case("experts", "healthy", 4, "", None, ""),
    Case("local_steps", "healthy", 2, "", None, ""),
    Case("scaled_loss", "healthy", 2, "", None, ""),
)
CASES: Final = (*REPLICAS, *RUNS, *NAN, *SLOW, *HEALTHY)
