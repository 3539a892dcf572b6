"""The only code that opens SSH: Host and the steps that prepare machines and run a job."""
