"""Access to a machine: logins by key only, and a firewall where the vendor has none."""

import ipaddress
import re
from collections.abc import Sequence

from microcluster.core.polling import NotReadyError, wait_until
from microcluster.jobs.rendering import render
from microcluster.remote.errors import RemoteError, UnreachableError
from microcluster.remote.host import Host
from microcluster.remote.system import has_systemd

CONFIG = "/etc/ssh/sshd_config"
BEGIN, END = "# microcluster: logins by key only", "# microcluster: end"
# At the top of the file: sshd uses the first value of a keyword, and Ubuntu 18.04 knows no Include. AuthenticationMethods holds even
# where a Match block allows passwords. A session with a dead peer ends after five minutes.
BLOCK = f"""{BEGIN}
PasswordAuthentication no
KbdInteractiveAuthentication no
ChallengeResponseAuthentication no
PermitRootLogin prohibit-password
PubkeyAuthentication yes
AuthenticationMethods publickey
ClientAliveInterval 15
ClientAliveCountMax 20
{END}
"""
WANTED = {
    "passwordauthentication": ("no",),
    "kbdinteractiveauthentication": ("no",),
    "challengeresponseauthentication": ("no", ""),  # The older name, which newer releases do not print.
    "permitrootlogin": ("prohibit-password", "without-password"),
    "pubkeyauthentication": ("yes",),
    "authenticationmethods": ("publickey",),
}
# The settings for root and for every account with a password, for a login from our address.
EFFECTIVE = """set -eu
PATH=$PATH:/usr/sbin; mkdir -p /run/sshd
from=${SSH_CONNECTION%% *}
for user in root $(awk -F: '$2 ~ /^[$]/ && $1 != "root" { print $1 }' /etc/shadow); do
  echo "$user:"
  sshd -T -C "user=$user,host=$from,addr=$from"
done
"""
# A socket-activated sshd has no process to reload: it reads the file for every connection.
REPLACE = """set -eu
PATH=$PATH:/usr/sbin
sshd -t -f "$1"
mv -f "$1" "$2"
pid=$(cat "$(sshd -T | awk '$1 == "pidfile" { print $2 }')" 2>/dev/null) || exit 0
kill -HUP "$pid"
"""
RELOAD_TIMEOUT_S = 30.0
OFFERED = frozenset({"publickey"})
SCRIPT = "/etc/microcluster/firewall.sh"
UNIT = "microcluster-firewall.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
UNIT_TEXT = f"""[Unit]
Description=Firewall of microcluster
Before=network-pre.target
Wants=network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh {SCRIPT}

[Install]
WantedBy=multi-user.target
"""
CALLER = 'echo "${SSH_CONNECTION%% *}"'
"""Script that prints the address from which we reach the machine."""
ACTIVE = ("iptables", "-C", "INPUT", "-j", "MICROCLUSTER")


def ensure_key_login(host: Host) -> bool:
    """Make sshd accept keys only, and prove it; return whether anything changed."""
    if not wrong_settings(_effective(host)) and host.offered_logins() == OFFERED:
        return False
    text = with_block(host.read(CONFIG) or "")
    host.put(f"{CONFIG}.new", text, "0600")
    host.run(("sh", "-c", REPLACE, "replace-sshd-config", f"{CONFIG}.new", CONFIG))
    wrong = wrong_settings(_effective(host))
    if wrong:
        raise RemoteError(
            f"turning password logins off on {host}: {CONFIG} still has {'; '.join(wrong)}. A Match block in it or in an included "
            f"file sets it: fab ssh {host.facts.name}, remove it, then run the same command again."
        )
    _wait_for_keys_only(host)
    return True


def with_block(text: str) -> str:
    """Return sshd's configuration with our block once, at its top."""
    before, begin, rest = text.partition(f"{BEGIN}\n")
    if begin:
        text = before + rest.partition(f"{END}\n")[2]
    return BLOCK + text


def wrong_settings(effective: str) -> list[str]:
    """Return the settings in the output of `sshd -T` that allow more than keys, as "user: keyword value"."""
    wrong = []
    of_users = re.split(r"^(\S+):\n", effective, flags=re.MULTILINE)
    for user, lines in zip(of_users[1::2], of_users[2::2], strict=True):
        settings = dict(line.partition(" ")[::2] for line in lines.splitlines())
        wrong += [
            f"{user}: {keyword} {settings.get(keyword) or 'unknown'}"
            for keyword, allowed in WANTED.items()
            if settings.get(keyword, "") not in allowed
        ]
    return wrong if len(of_users) > 1 else ["nothing to show"]


def _effective(host: Host) -> str:
    return host.run(("sh", "-c", EFFECTIVE, "sshd-settings")).stdout


def _wait_for_keys_only(host: Host) -> None:
    """Return when the running sshd offers keys only; while it reloads it may refuse connections."""

    def offers_keys_only() -> bool:
        try:
            return host.offered_logins() == OFFERED
        except UnreachableError:
            return False

    try:
        wait_until(f"sshd on {host} to take keys only", offers_keys_only, timeout_s=RELOAD_TIMEOUT_S, usual_s=1)
    except NotReadyError as late:
        raise RemoteError(
            f"{late} The running sshd has not read its new configuration: fab ssh {host.facts.name}, "
            "restart sshd, then run the same command again."
        ) from late


def ensure_firewall(root: Host, admin_cidrs: Sequence[str], private_subnet: str | None) -> bool:
    """Let only the operator and the private network reach the machine; return whether anything changed.

    It comes back at every boot where systemd runs the machine.

    Raises:
        RemoteError: it would lock us out.
    """
    if private_subnet is None:
        raise RemoteError(
            f"closing the ports of {root}: the account does not say which addresses its private network has. Nothing was changed. "
            "Run `make up` again, which asks it again."
        )
    _refuse_to_lock_out(root, admin_cidrs, private_subnet)
    text = render("firewall.sh.j2", admin_cidrs=admin_cidrs, private_subnet=private_subnet)
    root.run(("mkdir", "-p", "-m", "755", SCRIPT.rpartition("/")[0]))
    changed = root.put(SCRIPT, text, "0600")
    if has_systemd(root) and root.put(UNIT_FILE, UNIT_TEXT):
        root.run(("systemctl", "daemon-reload"))
        root.run(("systemctl", "enable", UNIT))
    if changed or root.run(ACTIVE, accept=range(256)).exit_code:
        root.run(("sh", SCRIPT))
        return True
    return False


def _refuse_to_lock_out(root: Host, admin_cidrs: Sequence[str], private_subnet: str) -> None:
    caller = root.run(("sh", "-c", CALLER, "caller")).stdout.strip()
    if not any(ipaddress.ip_address(caller) in ipaddress.ip_network(one) for one in (*admin_cidrs, private_subnet)):
        raise RemoteError(
            f"closing the ports of {root}: this computer reaches it from {caller}, which cluster.adminCidrs does not hold, and "
            "would be locked out. Nothing was changed. Add the address to the stack file, then run the same command again."
        )
