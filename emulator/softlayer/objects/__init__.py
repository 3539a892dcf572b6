"""How each object of the account looks to a caller: local properties, and relations to be asked for."""
