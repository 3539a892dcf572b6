"""Status of an account: machines, open billing items, the bill and the clock."""

from collections.abc import Callable
from typing import Any

from emulator.shared.account import EmulatedAccount
from emulator.shared.settings import Settings

Holdings = Callable[[Any], dict[str, Any]]
EMPTY = {"machines": [], "open_billing_items": 0, "bill": "0.00", "currency": "USD", "clock": None, "trouble": None}


def status_of(account: EmulatedAccount, holdings: Holdings, *, port: int, running: bool = True) -> dict[str, Any]:
    """The account's state as plain data; ``holdings`` is the vendor's part of it."""
    with account.lock:
        return {
            **holdings(account),
            **_settings(account.settings, running=running),
            "port": port,
            "account": account.settings.account_name,
            "trouble": account.trouble,
            "injected_faults": dict(account.fault_injector.injected),
            "not_emulated": dict(account.not_emulated),
        }


def status_without_account(settings: Settings) -> dict[str, Any]:
    """The state of an account that has never been started."""
    return EMPTY | _settings(settings, running=False)


def as_text(status: dict[str, Any]) -> str:
    """The status for people; a running server of an older version may not report all of it."""
    where = f"on port {status['port']}" if status["running"] else f"not running; start it: {status['start']}"
    lines = [f"emulator: {where}", f"clock: {status['clock'] or '-'}"]
    if status.get("trouble"):
        lines.append(f"trouble: {status['trouble']}")
    for each in status["machines"]:
        lines.append(f"machine {each['guest_id']} {_printable(each['name'])} ({each['flavor']}): {each['state']}")
        lines += [f"  {each['error']}"] if each["error"] else []
    for order in status.get("waiting", []):
        approve = f"python -m emulator approve {order['id']}"
        lines.append(f"order {order['id']} ({', '.join(order['names'])}) waits: {approve}")
    for title, key in (("injected faults", "injected_faults"), ("not emulated", "not_emulated")):
        if counts := status.get(key):
            lines.append(f"{title}: " + ", ".join(f"{name} {times}" for name, times in sorted(counts.items())))
    for each in status.get("billed", []):
        limit = f", at most {each['at_most_per_month']} a month" if each["at_most_per_month"] else ""
        lines.append(
            f"billed: {each['what']} {each['id']} ({_printable(each['name'])}): {each['per_hour']} an hour{limit}"
        )
    lines.append(f"open billing items: {status['open_billing_items']}")
    lines.append(f"bill so far: {status['bill']} {status['currency']}")
    return "\n".join(lines)


def _printable(text: str) -> str:
    """A name that a person chose; what could move a terminal's cursor is shown as its code."""
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)


def _settings(settings: Settings, *, running: bool) -> dict[str, Any]:
    registry = f"{settings.registry_name}:{settings.registry_port}" if settings.registry_name else None
    return {
        "running": running,
        "port": settings.port,
        "state": str(settings.state),
        "registry": registry,
        "start": settings.COMMAND.format("start"),
    }
