"""Campaigns against the provider: killed at every call, driven through bad weather, judged by the account's own history."""
