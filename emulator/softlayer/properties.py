"""Properties of SoftLayer's objects that are empty here: nothing that is sold has them.

A mask may name them, because the official client's masks do; any other unknown property is refused by name.
"""

LEFT_OUT = frozenset(
    {
        "allocation",
        "amountIn",
        "amountOut",
        "attachedNetworkGateway",
        "attributeTypeKeyName",
        "blockDevices",
        "datacenter",
        "dedicatedHost",
        "downlinkComponent",
        "endPointIpAddress",
        "hardware",
        "initialInvoice",
        "lastResult",
        "membersDescription",
        "monitoringServiceComponent",
        "networkComponentGroup",
        "networkComponentTrunks",
        "networkFirewall",
        "networkVlanFirewall",
        "originalSnapshotName",
        "originalVolumeName",
        "originalVolumeSize",
        "parentVolume",
        "queryType",
        "replicationSchedule",
        "replicationStatus",
        "responseAction",
        "snapshotSizeBytes",
        "transaction",
        "virtualGuest",
        # A rule of a security group has only those of these that it was given.
        "portRangeMax",
        "portRangeMin",
        "protocol",
        "remoteGroupId",
        "remoteIp",
    }
)
