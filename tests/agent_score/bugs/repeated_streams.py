"""Seeds come from the place on the node, and there are two nodes: ranks 4-7 repeat 0-3.

Estimates an option's price by Monte Carlo, with independent paths in each rank.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass

from mini_mpi import Comm

PER_NODE = 4
SEED = 20_240
PATHS = 2_000


@dataclass(frozen=True)
class Option:
    """A European call."""

    spot: float = 100.0
    strike: float = 105.0
    rate: float = 0.03
    volatility: float = 0.2
    years: float = 1.0

    def payoff(self, normal: float) -> float:
        drift = (self.rate - self.volatility**2 / 2) * self.years
        end = self.spot * math.exp(drift + self.volatility * math.sqrt(self.years) * normal)
        return math.exp(-self.rate * self.years) * max(end - self.strike, 0.0)


@dataclass
class Estimate:
    """A mean and its standard error, from sums over all ranks."""

    count: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def add(self, count: float, total: float, squares: float) -> None:
        self.count += count
        self.total += total
        self.squares += squares

    @property
    def mean(self) -> float:
        return self.total / self.count

    @property
    def error(self) -> float:
        return math.sqrt((self.squares / self.count - self.mean**2) / self.count)


def stream(rank: int) -> random.Random:
    """The random numbers of one rank."""
    place = rank % PER_NODE
    return random.Random(SEED + place)  # BUG


def main() -> None:
    comm = Comm()
    option, estimate, chance = Option(), Estimate(), stream(comm.rank)
    for number in range(20_000):
        payoffs = [option.payoff(chance.gauss(0, 1)) for _ in range(PATHS)]
        subtotal = sum(payoffs)
        squares = sum(payoff**2 for payoff in payoffs)
        estimate.add(*comm.allreduce([float(PATHS), subtotal, squares]))
        if comm.rank == 0:
            print(f"{number}: {estimate.mean:.4f} ± {estimate.error:.4f}", flush=True)
        time.sleep(0.2)


if __name__ == "__main__":
    main()
