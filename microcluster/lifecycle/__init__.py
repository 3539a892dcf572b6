"""Bring clusters up and down: the steps of make, Pulumi's state, locks, processes that were left over, unsaved work."""
