"""The accounts that a stack can rent in: what each sells, what it costs, and which keys of the stack file it has."""
