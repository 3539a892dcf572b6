"""What a run's records say: its state, hints after a failure, network use, the questions of a report. Pure."""
