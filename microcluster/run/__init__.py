"""The run of a stack that is up: its machines, state, cost, files and report."""
