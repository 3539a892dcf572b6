"""Formats of what programs write: their checkpoints and their logs."""
