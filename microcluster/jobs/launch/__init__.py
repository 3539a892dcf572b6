"""The ways to start ranks: argv and environment for each; pure."""
