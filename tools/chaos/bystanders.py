"""Somebody else's things in the account, with names like ours: a machine, a key and a group of another stack, and a stranger's machine."""

from typing import Any

from emulator.softlayer.api import SoftLayer
from emulator.softlayer.calls import Call, Credentials
from emulator.softlayer.faults import Fault
from tools.chaos.program import MARK, PUBLIC_KEY, RULES, SIZE, STACK, TAGS

OTHER_MARK = MARK[:-1] + ("0" if MARK[-1] != "0" else "1")
DOMAINS = (f"{STACK}-{OTHER_MARK}.microcluster", "example.com")
OWNER = Credentials("local", "local")
OTHER_KEY = PUBLIC_KEY[:-4] + "AAAA"


def settle(api: SoftLayer) -> None:
    """Order and make them, as their owners would."""
    for domain in DOMAINS:
        guest = _asked(api, "Virtual_Guest", "createObject", _guest(domain))
        _asked(api, "Virtual_Guest", "setTags", ",".join(TAGS), identifier=guest["id"])
    notes = f"microcluster {STACK}-{OTHER_MARK}"
    _asked(api, "Security_Ssh_Key", "createObject", {"key": OTHER_KEY, "label": f"{STACK}-{MARK}", "notes": notes})
    group = {"name": f"{STACK}-{OTHER_MARK}-members", "description": f"{notes}: members"}
    made = _asked(api, "Network_SecurityGroup", "createObject", group)
    _asked(api, "Network_SecurityGroup", "addRules", [{"direction": RULES[0]["direction"]}], identifier=made["id"])


def _guest(domain: str) -> dict[str, Any]:
    return {
        "hostname": "gpu-0",
        "domain": domain,
        "datacenter": {"name": SIZE["datacenter"]},
        "hourlyBillingFlag": True,
        "localDiskFlag": False,
        "supplementalCreateObjectOptions": {"flavorKeyName": SIZE["flavor"]},
        "operatingSystemReferenceCode": SIZE["os"],
        "blockDevices": [{"device": "2", "diskImage": {"capacity": 100}}],
        "networkComponents": [{"maxSpeed": 1000}],
    }


def _asked(api: SoftLayer, service: str, method: str, *arguments: Any, identifier: int | None = None) -> Any:
    call = Call(f"SoftLayer_{service}", method, arguments, identifier, credentials=OWNER)
    result = api.reply(call).result
    if isinstance(result, Fault):
        raise result
    return result.value
