"""A SoftLayer account on this machine: the API over XML-RPC and REST, its catalog, its bill and its machines."""
