"""One run in its folder: its document, its records, and how its commands run on its nodes."""
