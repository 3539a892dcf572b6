"""A SoftLayer account in one process: the API over XML-RPC and REST, its catalog, its orders, its bills."""
