"""A SoftLayer account: the API over XML-RPC and REST, its catalog, orders and bills."""
