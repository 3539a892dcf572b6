"""An account, read: who it is, what it lists under a mark, and whether its key's user sees all of it."""

import os
import threading
from collections.abc import Mapping
from typing import Any

from providers.paperspace import credentials, names
from providers.paperspace.api import Api, ApiError
from providers.rental.errors import AccountError, ProviderError, why_unreadable
from providers.rental.operation import Identity
from providers.rental.owner_mark import Owner
from providers.rental.wire import READ_ATTEMPTS, SharedList

MACHINES, NETWORKS, DRIVES = "/machines", "/private-networks", "/shared-drives"
SCRIPTS, ADDRESSES, EVENTS = "/startup-scripts", "/public-ips", "/machine-events"
LOCAL_ATTEMPTS = 3
ADMIN = "Team settings > Members > the user > Admin"

Row = dict[str, Any]


class Account:
    """One team through one key."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.secrets = (api.credentials.api_key,)
        self._lists = {path: self._shared(path) for path in (MACHINES, NETWORKS, DRIVES, SCRIPTS)}
        self._session: Row | None = None
        self._lock = threading.Lock()

    def identity(self) -> Identity:
        """Ask once who we are; the first proof that the key is valid."""
        session = self.session()
        team, user = session["team"], session.get("user") or {}
        who = str(user.get("email") or user.get("id") or "the key's user")
        return Identity(str(team["id"]), str(team.get("namespace") or ""), who, self.api.credentials.endpoint)

    def session(self) -> Row:
        """Ask once for the key's user and team."""
        with self._lock:
            if self._session is None:
                self._session = self._ask_session()
            return self._session

    def under(self, path: str, owner: Owner, max_age_s: float = 0.0) -> list[Row]:
        """List what bears exactly this stack and mark in its name."""
        return self._lists[path].under(owner, max_age_s)

    def check_sees_all(self, doing: str) -> None:
        """Refuse to believe in an absence, or to order, with a user who is shown only what was assigned to it.

        Raises:
            ProviderError: the text says what is missing, and where it is granted.
        """
        session = self.session()
        team_id = str(session["team"].get("id"))
        for membership in (session.get("user") or {}).get("teamMemberships") or []:
            if str((membership.get("team") or {}).get("id")) != team_id:
                continue
            if not (membership.get("isAdmin") or membership.get("isOwner")):
                raise ProviderError(
                    f"{doing}: {self.identity().username} is a member of team {self.identity().name} and no admin, so machines, "
                    f"networks, drives and addresses may be there and billed that this key does not show. Nothing was done. "
                    f"Use an admin's key, or have the user made one ({ADMIN}), and run the command again."
                )

    def _shared(self, path: str) -> SharedList:
        # Not the API's own filter by name: how it matches is not documented, and what it hides would be ordered again.
        return SharedList(
            lambda owner: [row for row in self.api.list(path) if names.owner_of(row.get("name")) == owner]
        )

    def _ask_session(self) -> Row:
        key = self.api.credentials
        attempts = LOCAL_ATTEMPTS if key.is_local else READ_ATTEMPTS
        try:
            found = self.api.read("/auth/session", attempts=attempts, expect=dict | None)
        except ApiError as error:
            raise AccountError(_unreadable(error, key)) from error
        team = found.get("team") if found else None
        if not isinstance(team, dict) or not team.get("id"):
            # The API answers a key that it does not know with null and status 200.
            raise AccountError(
                f"opening the account at {key.endpoint}: the API does not know this key. Check the key file or "
                f"{credentials.VARIABLE}; a key is shown once, so that a lost one has to be made anew in the console."
            )
        return found


def open_account(key_file: str | None = None, exported: Mapping[str, str] = os.environ) -> Account:
    """Open the account that the key belongs to, and prove that it answers.

    Raises:
        AccountError: with a sentence for the person.
    """
    try:
        account = Account(Api(credentials.load(key_file, exported), threading.Event()))
    except credentials.CredentialsError as error:
        raise AccountError(str(error)) from error
    account.identity()
    return account


def _unreadable(error: ApiError, key: credentials.Credentials) -> str:
    asked = f"opening the account at {key.endpoint}"
    if error.is_unauthorised:
        return f"{asked}: the API refuses this key ({error.text}). Check the key file or {credentials.VARIABLE}."
    return why_unreadable(asked, error, "python -m emulator start paperspace" if key.is_local else None)
