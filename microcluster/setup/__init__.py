"""Prepare a machine for microcluster, and take a cluster up and down: what every target of the Makefile calls."""
