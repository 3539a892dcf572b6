"""What a site holds, for the emulator's status: its jobs count as what is rented, its machines are always there."""

from datetime import UTC, datetime
from typing import Any

import docker
import docker.errors
import requests.exceptions

from emulator.pbs.account import Account
from emulator.pbs.site import LOGIN_ID, address_of, names

LIST_JOBS = ("squeue", "--noheader", "--format=%i %j %u %T")


def holdings(account: Account) -> dict[str, Any]:
    """Jobs and machines of the site."""
    settings, jobs = account.settings, _jobs(account)
    return {
        "machines": [],
        "site": [
            {"name": name, "address": address_of(settings, number), "error": account.machines.get(number, "not up yet")}
            for number, name in names(settings).items()
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
