"""An emulated Paperspace account: the REST API v1, its catalog and its bills."""
