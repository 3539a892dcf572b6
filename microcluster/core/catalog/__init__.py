"""Catalogs with dated facts: GPUs, and the machines that each account sells."""
