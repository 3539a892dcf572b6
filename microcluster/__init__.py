"""Rent a GPU micro-cluster, train, stop paying."""
