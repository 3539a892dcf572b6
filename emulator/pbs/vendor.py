"""The site with a queue as the emulator's commands see it."""

from datetime import UTC, datetime
from typing import Any

import docker
import docker.errors
import requests.exceptions

from emulator.pbs.access import CLIENT_FILE, write_client_file
from emulator.pbs.settings import LOGIN_ID, Settings
from emulator.pbs.site import Account, Site
from emulator.vendor import Vendor

LIST_JOBS = ("squeue", "--noheader", "--format=%i %j %u %T")


def holdings(account: Account) -> dict[str, Any]:
    """Its jobs, which count as what is rented, and its machines, which are always there."""
    settings, jobs = account.settings, _jobs(account)
    return {
        "machines": [],
        "site": [
            {"name": name, "address": settings.address_of(number), "error": account.machines.get(number, "not up yet")}
            for number, name in settings.names.items()
        ],
        "jobs": jobs,
        "open_billing_items": len(jobs),
        "bill": "0.00",
        "currency": "USD",
        "clock": datetime.fromtimestamp(account.now, UTC).isoformat(timespec="seconds"),
    }


def _jobs(account: Account) -> list[str]:
    """The jobs in the queue, one line each; none while the login host does not run."""
    if account.settings.machines == "none":
        return []
    try:
        login = docker.from_env().containers.get(f"{account.settings.account_name}-{LOGIN_ID}")
        code, output = login.exec_run(LIST_JOBS)
    except (docker.errors.DockerException, requests.exceptions.RequestException):
        return []
    return output.decode(errors="replace").splitlines() if code == 0 else []


PBS = Vendor(
    settings=Settings,
    folder="emulator-pbs",
    account=Account,
    routes=lambda account: [],  # people reach a queue over ssh
    machine_source=Site,
    holdings=holdings,
    client_file=CLIENT_FILE,
    write_client_file=write_client_file,
    commands={},
    machines_end_with_server=True,
)
