"""A small Transformer that translates English into German, for torchrun: an example of a program of one's own for the kind `torchrun`.

It takes the arguments of hkproj/pytorch-transformer-distributed that have a meaning here. It prints its progress as JSON lines, saves
under another name and renames, and goes on from a checkpoint that it is given.
"""

import argparse
import json
import os
import time

import torch
from corpus import PAD, Corpus
from model import Translator
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

VALIDATION_PAIRS = 64
WARMUP_STEPS = 40


def main():
    options = parse()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    corpus = Corpus(options.corpus, options.seq_len)
    model = Translator(len(corpus.source), len(corpus.target), options.d_model, options.seq_len).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr, betas=(0.9, 0.98))
    step = load(options.preload, rank, model, optimizer, device)
    trained = DistributedDataParallel(model)
    lossfn = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    tokens, since = 0, time.monotonic()
    while step < options.steps:
        started = time.monotonic()
        source, target = (part.to(device) for part in corpus.batch(step * ranks + rank, options.batch_size))
        for group in optimizer.param_groups:
            group["lr"] = options.lr * min(1.0, (step + 1) / WARMUP_STEPS)
        loss = loss_of(trained, lossfn, source, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step, tokens = step + 1, tokens + int((target != PAD).sum())
        if step % options.log_every == 0 or step == options.steps:
            figures = torch.tensor([loss.item() / ranks, float(tokens)], device=device)
            distributed.all_reduce(figures)
            pace = float(figures[1]) / (time.monotonic() - since)
            tell(rank, step=step, loss=float(figures[0]), tokens_per_second=pace)
            tokens, since = 0, time.monotonic()
        if step % options.save_every == 0 or step == options.steps:
            tell(rank, step=step, validation_loss=validate(model, lossfn, corpus, device))
            if rank == 0:
                save(options.model_folder, model, optimizer, step)
        time.sleep(max(0.0, options.pace - (time.monotonic() - started)))
    distributed.barrier()  # By its end gloo's threads have let go of tensors that a Python which ends cannot free any more.
    distributed.destroy_process_group()


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=8, help="pairs of one rank in a step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seq_len", type=int, default=16, help="words; longer sentences are left out")
    parser.add_argument("--d_model", type=int, default=64)
    parser.add_argument("--model_folder", required=True, help="for the checkpoints")
    parser.add_argument("--preload", help="a checkpoint to go on from")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--log_every", type=int, default=10, help="steps between two lines of progress")
    parser.add_argument("--save_every", type=int, default=20, help="steps between two checkpoints")
    parser.add_argument("--corpus", default="/opt/microcluster/corpus/sentences.tar")
    parser.add_argument(
        "--pace", type=float, default=0.0, help="seconds that a step takes at least, to have time to watch"
    )
    return parser.parse_args()


def loss_of(model, lossfn, source, target):
    """Return the mean loss of the words that follow each word of the target."""
    return lossfn(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())


@torch.no_grad()
def validate(model, lossfn, corpus, device):
    """Return the mean over all ranks of the loss on pairs that are never trained on, each rank's on its own share."""
    model.eval()
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    source, target = (part.to(device) for part in corpus.validation(rank, ranks, VALIDATION_PAIRS))
    loss = loss_of(model, lossfn, source, target) / ranks
    model.train()
    distributed.all_reduce(loss)
    return loss.item()


def load(path, rank, model, optimizer, device):
    """Let every rank have what the first one reads, and return the step; ranks must not choose for themselves."""
    state = [torch.load(path, map_location="cpu") if path and rank == 0 else None]
    distributed.broadcast_object_list(state, src=0, device=device)
    if state[0] is None:
        return 0
    model.load_state_dict(state[0]["model"])
    optimizer.load_state_dict(state[0]["optimizer"])
    return state[0]["step"]


def save(folder, model, optimizer, step):
    """Write the checkpoint under another name first, so that one of this name is always whole."""
    path = os.path.join(folder, f"tmodel_{step}.pt")
    with open(path + ".new", "wb") as file:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def tell(rank, **figures):
    if rank == 0:
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
