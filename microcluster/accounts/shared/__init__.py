"""Safe orders and proven cancellations against any account; knows no vendor."""
