"""Names below ``open_seq2seq.data.text2text``."""
