"""Datacenters, port speeds and the vendor's own networks."""

from __future__ import annotations

# Those that have ever sold a GPU guest; others exist, but nothing of this project can be rented there.
DATACENTERS = ("dal10", "dal12", "dal13", "fra02", "lon04", "lon06", "syd04", "tok02", "wdc07")

PORT_SPEEDS_MBPS = (10, 100, 1000)

# IBM Cloud services network: DNS, time, provisioning, monitoring and storage of every datacenter. A security group that shuts these out of the
# private interface leaves a guest in provisioning for ever. The 10.x blocks are those that the vendor's Direct Link and VPC pages
# reserve for it; 161.26/16 and 166.8/14 carry its DNS, mirrors and cloud service endpoints.
SERVICE_NETWORKS = ("10.0.0.0/14", "10.198.0.0/15", "10.200.0.0/14", "161.26.0.0/16", "166.8.0.0/14")
