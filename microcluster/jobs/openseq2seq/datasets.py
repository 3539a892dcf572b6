"""The data sets: where each lies, the files that a job reads of it, and the recipe by which the launcher makes them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from microcluster.jobs.plan import DataPlan, World

ID_DIGITS = 8
GB = 10**9
LARGEST_FINISHED_BYTES = 20 * GB
"""What a tar with finished files may have; the whole folder of WMT16 with all that nobody reads measures 13 GB."""
MODEL = "m_common.model"
NEEDED = (MODEL, "m_common.vocab", "SHA256SUMS")
"""What a trained model cannot be used without."""
"""What turns sentences into pieces and back; training does not read it, translating does."""
PIECES = (
    "--model_type=bpe",
    *("--pad_id=0", "--eos_id=1", "--bos_id=2", "--unk_id=3"),
    "--character_coverage=1.0",
)
"""How OpenSeq2Seq's tokenizer_wrapper.py learns its pieces, at the commit of SOURCE in this package, beside input, prefix and size."""
PINS = ("sha256", "md5", "bytes", "most_bytes")
"""What is known of an archive beforehand changes nothing about what is made of it."""


@dataclass(frozen=True)
class Dataset:
    """Where a data set lies below the mount point, the files the job reads, and how they are made.

    ``recipe`` is what agent/data/staging.py reads: archives, the texts in them, which pair is cleaned and shuffled,
    how pieces are learned, and which text becomes which file.
    """

    folder: str
    vocabulary: str
    train_source: str
    train_target: str
    eval_source: str
    eval_target: str
    vocabulary_size: int
    recipe: Mapping[str, Any]
    test: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Every file that the job reads, and that has to be on every host."""
        return (self.vocabulary, self.train_source, self.train_target, self.eval_source, self.eval_target)

    @property
    def optional(self) -> tuple[str, ...]:
        """What lies beside them for translating."""
        return (MODEL, *self.test)


def data_of(name: str, world: World) -> DataPlan:
    """Return the sentence pairs and the vocabulary; data that were brought lie apart from what is made here."""
    data = DATASETS[name]
    folder = f"{world.mount_point}/{data.folder}"
    return DataPlan(
        world.data_id or recipe_id(name),
        f"{folder}-{world.data_id}" if world.data_id else folder,
        data.files,
        data.recipe,
        LARGEST_FINISHED_BYTES,
        optional=data.optional,
        pairs=((data.train_source, data.train_target), (data.eval_source, data.eval_target)),
        vocabulary=(data.vocabulary, data.vocabulary_size),
        needed=NEEDED,
    )


def recipe_id(name: str) -> str:
    """Return what names the data that a data set's own recipe makes: another recipe is other data."""
    recipe = dict(DATASETS[name].recipe)
    recipe["archives"] = [{key: one[key] for key in one if key not in PINS} for one in recipe["archives"]]
    return f"{name}-{hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:ID_DIGITS]}"


def _archive(name: str, address: str, most_bytes: int, **pins: str) -> dict[str, Any]:
    return {"name": name, "address": address, "most_bytes": most_bytes, **pins}


def _training(language: str) -> list[list[str]]:
    return [
        ["europarl-v7.tgz", f"europarl-v7.de-en.{language}"],
        ["common-crawl.tgz", f"commoncrawl.de-en.{language}"],
        ["news-commentary-v11.tgz", f"training-parallel-nc-v11/news-commentary-v11.de-en.{language}"],
    ]


DATASETS = {
    # As OpenSeq2Seq's scripts/get_en_de.sh makes it, without the vocabularies of one language each, which its job never reads.
    "wmt16-en-de": Dataset(
        "wmt16_de_en",
        "m_common.vocab",
        "train.clean.en.shuffled.BPE_common.32K.tok",
        "train.clean.de.shuffled.BPE_common.32K.tok",
        "wmt13-en-de.src.BPE_common.32K.tok",
        "wmt13-en-de.ref.BPE_common.32K.tok",
        32768,
        {
            "archives": [
                _archive("europarl-v7.tgz", "https://www.statmt.org/europarl/v7/de-en.tgz", GB),
                _archive("common-crawl.tgz", "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz", 3 * GB),
                _archive(
                    "news-commentary-v11.tgz",
                    "https://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz",
                    GB,
                ),
                # Addresses and MD5 as sacreBLEU 2 has them, which is what the script asks for these two.
                _archive(
                    "wmt13-test.tgz",
                    "https://statmt.org/wmt13/test.tgz",
                    GB // 10,
                    md5="48eca5d02f637af44e85186847141f67",
                ),
                _archive(
                    "wmt14-test.tgz",
                    "https://statmt.org/wmt14/test-filtered.tgz",
                    GB // 10,
                    md5="84c597844c1542e29c2aff23aaee4310",
                ),
            ],
            "texts": {
                "train.en": _training("en"),
                "train.de": _training("de"),
                "wmt13-en-de.src": [["wmt13-test.tgz", "test/newstest2013-src.en.sgm"]],
                "wmt13-en-de.ref": [["wmt13-test.tgz", "test/newstest2013-src.de.sgm"]],
                "wmt14-en-de.src": [["wmt14-test.tgz", "test/newstest2014-deen-src.en.sgm"]],
                "wmt14-en-de.ref": [["wmt14-test.tgz", "test/newstest2014-deen-ref.de.sgm"]],
            },
            "train": ["train.en", "train.de"],
            "lengths": [1, 80],
            "seed": 16,
            "pieces": list(PIECES),
            "encode": {
                "train.clean.en.shuffled.BPE_common.32K.tok": "train.en",
                "train.clean.de.shuffled.BPE_common.32K.tok": "train.de",
                "wmt13-en-de.src.BPE_common.32K.tok": "wmt13-en-de.src",
                "wmt13-en-de.ref.BPE_common.32K.tok": "wmt13-en-de.ref",
                "wmt14-en-de.src.BPE_common.32K.tok": "wmt14-en-de.src",
                "wmt14-en-de.ref.BPE_common.32K.tok": "wmt14-en-de.ref",
            },
            # Counted after cleaning, as published for the whole set; another number is told, not refused.
            "usual_lines": 4_524_868,
        },
        ("wmt14-en-de.src.BPE_common.32K.tok", "wmt14-en-de.ref.BPE_common.32K.tok"),
    ),
    # The sentences of Debian's translations, which the local stack's image carries.
    "debian-en-de": Dataset(
        "debian_en_de",
        "m_common.vocab",
        "train.en.tok",
        "train.de.tok",
        "eval.en.tok",
        "eval.de.tok",
        2048,
        {
            "archives": [_archive("sentences.tar", "file:///opt/microcluster/corpus/sentences.tar", GB)],
            "texts": {name: [["sentences.tar", name]] for name in ("train.en", "train.de", "eval.en", "eval.de")},
            "train": ["train.en", "train.de"],
            "lengths": [1, 80],
            "seed": 16,
            "pieces": list(PIECES),
            "encode": {f"{name}.tok": name for name in ("train.en", "train.de", "eval.en", "eval.de")},
            "usual_lines": None,
        },
    ),
}
