"""The guard of a rental: when it must be over, and how it is brought to its end."""
