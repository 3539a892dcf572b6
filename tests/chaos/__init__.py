"""Campaigns against the provider: killed at every call, driven through faults, judged by the account's own history."""
