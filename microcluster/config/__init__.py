"""The stack file: read, checked, completed and planned, as one typed and frozen object."""
