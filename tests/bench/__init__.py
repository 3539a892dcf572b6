"""The project's own figures, for a person to repeat: `make bench`."""
