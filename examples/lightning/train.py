"""A classifier with PyTorch Lightning's Trainer, as its users write it; two half moons, made here."""

import argparse
import math

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(lightning.LightningModule):
    def __init__(self, learning_rate=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.learning_rate)


def half_moons(count):
    angle = torch.rand(count) * math.pi
    label = torch.arange(count) % 2
    side = 1.0 - 2.0 * label
    x = torch.stack([side * torch.cos(angle) + label, side * torch.sin(angle) + 0.5 * label], dim=1)
    return TensorDataset(x + 0.1 * torch.randn(count, 2), label)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--num_nodes", type=int, default=1)
    parser.add_argument("--max_epochs", type=int, default=20)
    parser.add_argument("--root", default=".")
    parser.add_argument("--ckpt_path")
    args = parser.parse_args()

    lightning.seed_everything(7)
    trainer = lightning.Trainer(
        devices=args.devices, num_nodes=args.num_nodes, max_epochs=args.max_epochs, default_root_dir=args.root
    )
    trainer.fit(Classifier(), DataLoader(half_moons(8_000), batch_size=64, shuffle=True), ckpt_path=args.ckpt_path)
