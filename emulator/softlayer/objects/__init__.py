"""Views of the account's objects for callers: local properties, and relations to be asked for."""
