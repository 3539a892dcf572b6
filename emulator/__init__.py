"""Accounts of vendors on this computer: their API, catalog, bill and machines."""
