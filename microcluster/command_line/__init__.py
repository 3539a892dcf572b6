"""Command line of `fab`: options, errors with their exit codes, and commands as parts of others."""
