"""A Transformer sharded with FSDP over all ranks, saved with torch.distributed.checkpoint: each rank writes its part."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

WORDS, LENGTH = 64, 32


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(64, WORDS)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.out(self.encoder(self.embed(tokens), mask=mask))


def batch(step, size, device):
    generator = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
    start = torch.randint(WORDS, (size, 1), generator=generator)
    pace = torch.randint(1, 6, (size, 1), generator=generator)
    return ((start + pace * torch.arange(LENGTH + 1)) % WORDS).to(device)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default="checkpoints")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--save-every", type=int, default=50)
    parser.add_argument("--resume")
    args = parser.parse_args()

    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    torch.manual_seed(0)
    model = FSDP(Model().to(device), auto_wrap_policy=ModuleWrapPolicy({nn.TransformerEncoderLayer}), device_id=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    first = 0
    if args.resume:
        model_state, optimizer_state = get_state_dict(model, optimizer)
        state = {"model": model_state, "optimizer": optimizer_state, "step": 0}
        dcp.load(state, checkpoint_id=args.resume)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        first = state["step"]
    for step in range(first + 1, args.steps + 1):
        tokens = batch(step, 16, device)
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
        if step % args.save_every == 0:
            model_state, optimizer_state = get_state_dict(model, optimizer)
            state = {"model": model_state, "optimizer": optimizer_state, "step": step}
            dcp.save(state, checkpoint_id=os.path.join(args.folder, f"step-{step}"))
    dist.barrier()  # By its end gloo's threads have let go of tensors that a Python which ends cannot free any more.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
