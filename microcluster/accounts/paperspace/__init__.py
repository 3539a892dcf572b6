"""The Paperspace provider: orders machines, drives and networks and proves that they are billed no more."""
