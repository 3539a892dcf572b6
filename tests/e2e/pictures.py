"""Pictures of four colors with noise, in folders as torchvision reads them: ``pictures.py FOLDER``."""

import random
import sys
from pathlib import Path

COLORS = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200), "yellow": (200, 200, 40)}
PICTURES = {"train": 60, "val": 12}
"""Pictures of each color for training and for validation, 288 in all."""
SIDE, NOISE = 64, 40


def draw(folder: Path) -> None:
    """Write the pictures, which are the same each time."""
    chance = random.Random(0)
    for part, count in PICTURES.items():
        for name, color in COLORS.items():
            (folder / part / name).mkdir(parents=True)
            for number in range(count):
                shades = [min(255, max(0, one + chance.randint(-NOISE, NOISE))) for one in color * SIDE * SIDE]
                (folder / part / name / f"{number}.ppm").write_bytes(b"P6 %d %d 255\n" % (SIDE, SIDE) + bytes(shades))


if __name__ == "__main__":
    draw(Path(sys.argv[1]).expanduser())
