"""What a person sees of runs: text, tables and the page of a report."""
