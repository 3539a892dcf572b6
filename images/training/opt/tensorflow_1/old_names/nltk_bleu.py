"""``nltk.translate.bleu_score.corpus_bleu``, the one function of nltk that ``models/text2text.py`` calls.

nltk 3.2.5, which upstream asks for, cannot be imported by Python 3.11, and later versions do not know ``emulate_multibleu``.
``data/lm/lmutils.py`` imports ``nltk.tokenize.word_tokenize`` for language models only.
"""

import math
import sys
from collections import Counter

from old_names.absent import AbsentModule

MAX_ORDER = 4


def corpus_bleu(list_of_references, hypotheses, emulate_multibleu=False):
    """Return BLEU (Papineni et al. 2002) from 0 to 1 with one reference a sentence, rounded as nltk 3.2.5 rounds it.

    A sentence that is too short for an order still counts one n-gram of it, as there.
    """
    pairs = [(references[0], hypothesis) for references, hypothesis in zip(list_of_references, hypotheses, strict=True)]
    precisions = [_precision(pairs, order) for order in range(1, MAX_ORDER + 1)]
    length = sum(len(hypothesis) for _, hypothesis in pairs)
    if precisions[0] == 0:
        return 0
    if 0 in precisions:
        return 0.0
    brevity = min(0.0, 1 - sum(len(reference) for reference, _ in pairs) / length)
    score = math.exp(brevity + sum(map(math.log, precisions)) / MAX_ORDER)
    return round(score, 4) if emulate_multibleu else score


def _precision(pairs, order):
    matched = counted = 0
    for reference, hypothesis in pairs:
        found = _ngrams(hypothesis, order)
        matched += sum((found & _ngrams(reference, order)).values())
        counted += max(1, sum(found.values()))
    return matched / counted


def _ngrams(words, order):
    return Counter(tuple(words[start : start + order]) for start in range(len(words) - order + 1))


def install():
    """Let ``import nltk`` find this."""
    names = ("nltk", "nltk.tokenize", "nltk.translate", "nltk.translate.bleu_score")
    nltk, tokenize, translate, bleu_score = (sys.modules.setdefault(name, AbsentModule(name)) for name in names)
    nltk.tokenize, nltk.translate, translate.bleu_score = tokenize, translate, bleu_score
    bleu_score.corpus_bleu = corpus_bleu
