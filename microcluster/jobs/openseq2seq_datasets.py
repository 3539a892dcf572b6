"""The data sets: where each lies below the mount point, the files that a job reads of it, and the recipe that makes them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from microcluster.jobs.finished_data import DataPlan

ID_DIGITS = 8
GB = 10**9
LARGEST_FINISHED_BYTES = 20 * GB
"""Limit of a tar with finished files; the whole folder of WMT16 with all that nobody reads measures 13 GB."""
MODEL, VOCABULARY = "m_common.model", "m_common.vocab"
"""Model that turns sentences into pieces and back, which only translating reads; and the list of the pieces."""
Pair = tuple[str, str]
PIECES = (
    "--model_type=bpe",
    *("--pad_id=0", "--eos_id=1", "--bos_id=2", "--unk_id=3"),
    "--character_coverage=1.0",
)
"""Options with which OpenSeq2Seq's tokenizer_wrapper.py learns its pieces, at the commit of SOURCE in this package, beside input, prefix and size."""
PINS = ("sha256", "md5", "bytes", "most_bytes")
"""Fields of an archive that do not change the data that are made of it."""


def data_of(name: str, disk: str, brought: str | None) -> DataPlan:
    """Return the sentence pairs and the vocabulary; data that were brought lie apart from what is made here."""
    data = DATASETS[name]
    folder = f"{disk}/{data.folder}"
    if brought:
        return replace(data, id=brought, folder=f"{folder}-{brought}")
    return replace(data, id=recipe_id(name), folder=folder)


def recipe_id(name: str) -> str:
    """Return what names the data that a data set's own recipe makes: another recipe is other data."""
    recipe = dict(DATASETS[name].recipe)
    recipe["archives"] = [{key: one[key] for key in one if key not in PINS} for one in recipe["archives"]]
    return f"{name}-{hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:ID_DIGITS]}"


def _dataset(
    folder: str, pieces: int, train: Pair, evaluation: Pair, recipe: Mapping[str, Any], *, test: tuple[str, ...] = ()
) -> DataPlan:
    """Return a data set of which each pair is a source and its target; ``recipe`` is what agent/data/staging.py reads."""
    return DataPlan(
        id="",
        folder=folder,
        files=(VOCABULARY, *train, *evaluation),
        recipe=recipe,
        largest_bytes=LARGEST_FINISHED_BYTES,
        optional=(MODEL, *test),
        pairs=(train, evaluation),
        vocabulary=(VOCABULARY, pieces),
        needed=(MODEL, VOCABULARY, "SHA256SUMS"),
    )


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
    "wmt16-en-de": _dataset(
        "wmt16_de_en",
        32768,
        ("train.clean.en.shuffled.BPE_common.32K.tok", "train.clean.de.shuffled.BPE_common.32K.tok"),
        ("wmt13-en-de.src.BPE_common.32K.tok", "wmt13-en-de.ref.BPE_common.32K.tok"),
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
        test=("wmt14-en-de.src.BPE_common.32K.tok", "wmt14-en-de.ref.BPE_common.32K.tok"),
    ),
    # The sentences of Debian's translations, which the local stack's image carries.
    "debian-en-de": _dataset(
        "debian_en_de",
        2048,
        ("train.en.tok", "train.de.tok"),
        ("eval.en.tok", "eval.de.tok"),
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
