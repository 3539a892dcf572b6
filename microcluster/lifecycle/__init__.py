"""Bring clusters up and down: the steps of make, Pulumi's state, locks, leftover processes, unsaved work."""
