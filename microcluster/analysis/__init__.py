"""Analysis of a run's records: state, hints after a failure, network use, answers for a report. Pure."""
