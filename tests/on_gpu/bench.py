"""Print as JSON what this GPU does: time to the first result, bytes and products a second, and a step of transformer-base.

Events of the device around each, three to warm up, the median of ten; random numbers, never zeros.
"""

import json
import statistics
import time

BEGAN = time.monotonic()
import torch  # noqa: E402 - how long it takes is asked
from torch import nn  # noqa: E402

IMPORTED = time.monotonic()
PAIRS, WORDS, VOCABULARY, WIDTH, HEADS, LAYERS = 256, 32, 32768, 512, 8, 6
"""`microcluster.core.catalog.gpus`: seconds for 256 samples of transformer-base; 32 words a side are about those of WMT16."""


def median_s(act, times=10):
    """Return the median seconds of ``act`` on the device."""
    found = []
    for number in range(times + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        act()
        end.record()
        end.synchronize()
        if number >= 3:
            found.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(found)


def copy_tb_s():
    source = torch.randint(0, 255, (4 << 30,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / median_s(lambda: target.copy_(source)) / 1e12


def to_device_gb_s():
    source = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
    target = torch.empty_like(source, device="cuda")
    return source.numel() / median_s(lambda: target.copy_(source, non_blocking=True)) / 1e9


def product_tflop_s(size=8192):
    left, right = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * size**3 / median_s(lambda: left @ right) / 1e12


class TransformerBase(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        nn.init.normal_(self.words.weight, std=WIDTH**-0.5)
        layers = {"num_encoder_layers": LAYERS, "num_decoder_layers": LAYERS, "dim_feedforward": 4 * WIDTH}
        self.body = nn.Transformer(WIDTH, HEADS, dropout=0.1, batch_first=True, **layers)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        return self.body(self.words(source), self.words(target), tgt_mask=mask) @ self.words.weight.T


def step_s(mixed):
    """Return the seconds of an update: forward, backward, Adam."""
    model = TransformerBase().cuda()
    optimizer, lossfn = torch.optim.Adam(model.parameters(), lr=1e-4), nn.CrossEntropyLoss()
    source, target = (torch.randint(0, VOCABULARY, (PAIRS, WORDS), device="cuda") for _ in range(2))

    def update():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=mixed):
            loss = lossfn(model(source, target[:, :-1]).float().flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        optimizer.step()

    return median_s(update)


def main():
    torch.zeros(1, device="cuda").item()
    found = {
        "import_s": IMPORTED - BEGAN,
        "first_result_s": time.monotonic() - IMPORTED,
        "name": torch.cuda.get_device_name(),
    }
    found.update(torch=torch.__version__, cuda=torch.version.cuda, nccl=".".join(map(str, torch.cuda.nccl.version())))
    found.update(copy_tb_s=copy_tb_s(), to_device_gb_s=to_device_gb_s(), product_tflop_s=product_tflop_s())
    torch.cuda.empty_cache()
    found["step_s"] = {"fp32": step_s(mixed=False), "mixed": step_s(mixed=True)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
