"""A small trainer on CPU that keeps OpenSeq2Seq's contract; it is not OpenSeq2Seq."""

VERSION = "0.1.0"
