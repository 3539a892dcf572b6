"""The rental of a stack: its account, charges and receipt, and its end."""
