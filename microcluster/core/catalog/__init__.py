"""What can be rented, as dated data: the GPUs, and for each account what it sells."""
