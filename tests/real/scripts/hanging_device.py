"""A tensor on a device that hangs, in rank 1; of torch there is what is asked of it."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any, cast


class Device:
    """A GPU whose queue looks empty."""

    type = "cuda"

    def __str__(self) -> str:
        return "cuda:1"


class Tensor:
    """Its data is never there."""

    shape = (2, 3)
    dtype = "torch.bfloat16"
    device = Device()

    def detach(self) -> Tensor:
        return self

    def numel(self) -> int:
        return 6

    def is_floating_point(self) -> bool:
        threading.Event().wait()
        return True


def train() -> None:
    loss = Tensor() if os.environ["RANK"] == "1" else 2.25
    step = 3
    print(step, loss)  # here
    time.sleep(0)  # after


torch = cast(Any, ModuleType("torch"))
torch.Tensor, torch.no_grad = Tensor, nullcontext
queue = SimpleNamespace(query=lambda: True)
torch.cuda = SimpleNamespace(current_stream=lambda _: queue, stream=nullcontext)
sys.modules["torch"] = torch
train()
