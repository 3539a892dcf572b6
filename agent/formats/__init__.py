"""What programs write: the formats of their checkpoints and of their logs."""
