"""A Transformer of two layers a side."""

import torch
from corpus import PAD
from torch import nn

LAYERS, HEADS = 2, 4


class Translator(nn.Module):
    """Scores of the target's next words for (pairs, words) of source and target."""

    def __init__(self, source_words, target_words, width, longest):
        super().__init__()
        self.source, self.target = nn.Embedding(source_words, width), nn.Embedding(target_words, width)
        self.place = nn.Embedding(longest, width)
        layers = {"num_encoder_layers": LAYERS, "num_decoder_layers": LAYERS, "dim_feedforward": 2 * width}
        self.transformer = nn.Transformer(width, HEADS, dropout=0.1, batch_first=True, **layers)
        self.transformer.encoder.enable_nested_tensor = False  # It only warns that it is new.
        self.scores = nn.Linear(width, target_words)

    def forward(self, source, target):
        length = target.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)
        padding = source == PAD
        masks = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
        masks["tgt_key_padding_mask"] = target == PAD
        return self.scores(
            self.transformer(
                self._placed(self.source, source), self._placed(self.target, target), tgt_mask=later, **masks
            )
        )

    def _placed(self, words, numbers):
        return words(numbers) + self.place(torch.arange(numbers.shape[1], device=numbers.device))
