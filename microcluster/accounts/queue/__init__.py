"""A site with a queue as an account: its jobs are found and deleted by their mark, and the receipt counts node hours."""
