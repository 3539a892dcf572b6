"""Parameters of the parallel text files."""

from enum import Enum


class SpecialTextTokens(Enum):
    """Numbers of the special pieces in every vocabulary."""

    PAD_ID = 0
    EOS_ID = 1
    S_ID = 2
    UNK_ID = 3


class ParallelTextDataLayer:
    """Two files with one tokenised sentence a line."""

    required = {
        "source_file": str,
        "src_vocab_file": str,
        "tgt_vocab_file": str,
        "max_length": int,
        "shuffle": bool,
        "repeat": bool,
    }
    optional = {
        "use_targets": bool,
        "delimiter": str,
        "target_file": str,
        "map_parallel_calls": int,
        "prefetch_buffer_size": int,
        "pad_lengths_to_eight": bool,
        "pad_vocab_to_eight": bool,
        "shuffle_buffer_size": int,
        "special_tokens_already_in_vocab": bool,
        "use_start_token": bool,
    }
