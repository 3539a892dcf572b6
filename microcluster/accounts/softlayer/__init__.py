"""The SoftLayer (IBM Cloud Classic) provider: orders, owner marks, waiting, cancelling."""
