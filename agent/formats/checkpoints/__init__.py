"""Checkpoints of a run: how those of each program are read and proven, how many stay, and their copies on other nodes."""
