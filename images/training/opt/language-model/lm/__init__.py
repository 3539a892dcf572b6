"""Our own LSTM language model, trained by Horovod: a stand-in for Texar's distributed example, with checkpoints."""

VERSION = "0.1.0"
