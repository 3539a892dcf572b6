"""Readers, which turn the lines of a run's log into events; each module is one kind of log."""
