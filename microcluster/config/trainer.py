"""What trains: NVIDIA's image gets OpenSeq2Seq, the local training image holds the stand-in and perhaps OpenSeq2Seq."""

from __future__ import annotations

from microcluster.home import Home
from microcluster.jobs.image import TRAINER, TRAINER_FILE

STAND_IN = "stand-in"
ONLY_STAND_IN = "the local training image holds nothing else; OPENSEQ2SEQ_SOURCE=... make images brings OpenSeq2Seq"


def in_local_image() -> str | None:
    """Return the OpenSeq2Seq that the last `make images` put into the local training image, or None.

    A preview works offline, so it reads what was written down instead of asking Docker or a registry.
    """
    try:
        name = (Home.of().root / TRAINER_FILE).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return name if TRAINER.fullmatch(name) else None
