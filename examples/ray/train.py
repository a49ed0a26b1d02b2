"""A small job of the shape of RLHF: rollout actors sample, tasks score, training actors learn.

    dap-mux run -- python examples/ray/train.py

Nothing in it knows of a debugger. Set breakpoints in your editor, in `generate` or `learn`, say.
"""

from __future__ import annotations

import argparse

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ROLLOUTS = 4
TRAINERS = 2
GOAL = 2.0  # what the policy is to learn: responses are prompts times this


@ray.remote(num_cpus=0, max_restarts=2, max_task_retries=2)
class Rollout:
    """Samples responses with the policy that it is given."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.sampled = 0

    def generate(self, step: int, policy: float) -> list[tuple[float, float]]:
        prompts = [float(self.seed + step + each) for each in range(1, 4)]
        samples = [(prompt, policy * prompt) for prompt in prompts]
        self.sampled += len(samples)
        return samples


@ray.remote(num_cpus=0.1)
class Trainer:
    """Computes the gradient of its share of the samples."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        self.learned = 0

    def learn(self, samples: list[tuple[float, float]], rewards: list[float]) -> float:
        mine = slice(self.shard, None, TRAINERS)
        pairs = list(zip(samples[mine], rewards[mine], strict=True))
        self.learned += len(pairs)
        return sum(-error * prompt for (prompt, _), error in pairs) / len(pairs)


@ray.remote(num_cpus=0.5)
def score(samples: list[tuple[float, float]]) -> list[float]:
    """How far each response is from the right one."""
    return [GOAL * prompt - response for prompt, response in samples]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--dashboard", action="store_true", help="needs ray[default]")
    options = parser.parse_args()
    steps: int = options.steps
    ray.init(num_cpus=2, object_store_memory=80_000_000, include_dashboard=options.dashboard)
    group = placement_group([{"CPU": 0.2}] * TRAINERS)
    rollouts = [Rollout.remote(seed) for seed in range(ROLLOUTS)]
    trainers = [
        Trainer.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, shard)).remote(
            shard
        )
        for shard in range(TRAINERS)
    ]
    policy = 0.0
    for step in range(steps):
        sampled = ray.get([each.generate.remote(step, policy) for each in rollouts])
        samples = [sample for each in sampled for sample in each]
        rewards = [
            reward for each in ray.get([score.remote(each) for each in sampled]) for reward in each
        ]
        gradients = ray.get([each.learn.remote(samples, rewards) for each in trainers])
        policy -= 0.03 * sum(gradients) / len(gradients)
        print(f"step {step}: policy {policy:.4f}")


if __name__ == "__main__":
    main()
