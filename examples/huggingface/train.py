"""A small GPT-2 with the Hugging Face Trainer, as its users write it; it learns to count, and nothing is downloaded."""

from dataclasses import dataclass

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

WORDS, LENGTH = 64, 32


@dataclass
class ModelArguments:
    n_layer: int = 2
    n_embd: int = 64


class Counting(Dataset):
    """Sequences that count up from somewhere, in steps of one to five."""

    def __len__(self):
        return 20_000

    def __getitem__(self, index):
        tokens = (index + (1 + index % 5) * torch.arange(LENGTH)) % WORDS
        return {"input_ids": tokens, "labels": tokens}


if __name__ == "__main__":
    model_args, training_args = HfArgumentParser((ModelArguments, TrainingArguments)).parse_args_into_dataclasses()
    config = GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_head=2, n_layer=model_args.n_layer, n_embd=model_args.n_embd
    )
    trainer = Trainer(model=GPT2LMHeadModel(config), args=training_args, train_dataset=Counting())
    trainer.train(resume_from_checkpoint=get_last_checkpoint(training_args.output_dir))
    trainer.save_model()
