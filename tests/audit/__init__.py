"""Looks for known weaknesses, insecure code and secrets."""
