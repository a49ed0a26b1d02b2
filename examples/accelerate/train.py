"""Fit y = 3x with Accelerate on CPU.

accelerate launch --cpu --mpirun_hostfile hosts --num_processes 4 train.py
"""

import torch
from accelerate import Accelerator


def main() -> None:
    accelerator = Accelerator(cpu=True)
    rank = accelerator.process_index
    linear = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(linear.weight)
    model, optimizer = accelerator.prepare(linear, torch.optim.SGD(linear.parameters(), lr=0.01))
    batch = torch.full((1, 1), rank + 1.0)
    for _ in range(5):
        loss = (model(batch) - 3 * batch).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    print(f"rank {rank}: weight {linear.weight.item():.4f}\n", end="", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
