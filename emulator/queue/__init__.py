"""A site with a queue: Slurm with the Torque wrappers on a login host and nodes with one home; there is no API."""
