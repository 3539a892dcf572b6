"""Display of runs: text, tables and the page of a report."""
