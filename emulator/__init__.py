"""A SoftLayer account on this machine: the API over XML-RPC and REST, its catalogue, its bill and its machines."""
