"""Fit y = 3x with Lightning: its main process starts the other ranks.

python train.py [--devices N]
"""

import argparse
from typing import Any

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):  # type: ignore[misc]  # of a library without types here
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def training_step(self, batch: Any, _: int) -> Any:
        (ones,) = batch
        x = ones * (self.global_rank + 1)
        loss = (x * self.weight - 3 * x).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=2)
    options = parser.parse_args()
    data = TensorDataset(torch.ones(5 * options.devices, 1))
    model = Model()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=options.devices,
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, DataLoader(data, batch_size=1))
    weight = model.weight.item()
    print(f"rank {trainer.global_rank}: weight {weight:.4f}\n", end="", flush=True)


if __name__ == "__main__":
    main()
