"""A small job of Monarch: trainers on a mesh of 2 by 2 procs, and a judge in every second of them.

    dap-mux run -- python examples/monarch/train.py

Nothing in it knows of a debugger. Set breakpoints in your editor, in `learn` or `judge`, say.
"""

from __future__ import annotations

import argparse

from monarch.actor import Actor, current_rank, endpoint, this_host

GOAL = 2.0  # what the weight is to become


class Trainer(Actor):
    """Computes the gradient of its own shard; its endpoints run on a thread of their own."""

    def __init__(self, scale: float) -> None:
        self.rank = current_rank().rank
        self.shard = [scale * (self.rank + each) for each in range(1, 4)]

    @endpoint
    def learn(self, step: int, weight: float) -> float:
        errors = [GOAL * x - weight * x for x in self.shard]
        gradient = -sum(error * x for error, x in zip(errors, self.shard, strict=True))
        return gradient / len(self.shard)


class Judge(Actor):
    """Lives in the same procs as two of the trainers; its endpoints run on an event loop."""

    @endpoint
    async def judge(self, step: int, weight: float) -> bool:
        distance = abs(GOAL - weight)
        return distance < 1 / (step + 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    steps = parser.parse_args().steps
    procs = this_host().spawn_procs({"dp": 2, "tp": 2})
    trainers = procs.spawn("trainer", Trainer, 0.5)
    judges = procs.slice(tp=1).spawn("judge", Judge)
    weight = 0.0
    for step in range(steps):
        gradients = list(trainers.learn.call(step, weight).get().values())
        weight -= 0.1 * sum(gradients) / len(gradients)
        verdicts = list(judges.judge.call(step, weight).get().values())
        print(f"step {step}: weight {weight:.4f}, good enough: {all(verdicts)}")


if __name__ == "__main__":
    main()
