"""Whether there is room for one more machine, at the vendor and in the team's limits."""

from emulator.paperspace.account import Account
from emulator.paperspace.errors import ApiError
from emulator.paperspace.settings import Settings


def has_room(account: Account, region: str, label: str) -> bool:
    """Whether the settings' capacity leaves room for one more machine of a type in a region."""
    machines = [each for each in account.store.machines.read_all() if each.region == region]
    of_type = sum(each.machine_type == label for each in machines)
    limits = account.settings.capacity
    return len(machines) < limits.get(region, len(machines) + 1) and of_type < limits.get(
        f"{region}/{label}", of_type + 1
    )


def require(account: Account, region: str, label: str) -> None:
    """Refuse one more machine where the team's limit is reached or the vendor has no room."""
    if len(account.store.machines) >= account.settings.max_machines:
        raise over_quota(account.settings)
    if not has_room(account, region, label):
        raise no_room(account.settings, region, label)


def over_quota(settings: Settings) -> ApiError:
    """The team has as much as it may have."""
    return ApiError(settings.quota_code, f"The limit of your team is reached ({settings.max_machines} machines).")


def no_room(settings: Settings, region: str, label: str) -> ApiError:
    """The vendor has no machine of this type left."""
    return ApiError(settings.capacity_code, f"Machine type {label} is out of capacity in region {region}.")
