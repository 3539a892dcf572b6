"""The services of the API: one table of methods for each; what is in none is not emulated."""
