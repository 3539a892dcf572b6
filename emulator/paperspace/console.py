"""What a person does in the vendor's console, because the API has no operation for it: put ssh keys on the account."""

import json

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator.paperspace.account import Account
from emulator.paperspace.records import SshKey
from emulator.server import from_this_computer


def routes(account: Account) -> list[Route]:
    """The paths for tests and for the command line."""

    async def add_key(request: Request) -> Response:
        try:
            text = json.loads(await request.body())["key"]
        except (ValueError, KeyError, TypeError):
            return JSONResponse({"error": 'Send {"key": "ssh-ed25519 ..."}.'}, 400)
        if not isinstance(text, str) or not text.strip() or "\n" in text.strip():
            return JSONResponse({"error": "A key is one line, as in an .pub file."}, 400)
        with account.lock:
            key = SshKey(account.next_id(), text.strip())
            account.store.ssh_keys[key.id] = key
            account.store.flush()
        return JSONResponse({"ssh_keys": len(account.store.ssh_keys)})

    async def remove_keys(request: Request) -> Response:
        with account.lock:
            for number in list(account.store.ssh_keys):
                del account.store.ssh_keys[number]
            account.store.flush()
        return JSONResponse({"ssh_keys": 0})

    return [
        Route("/console/ssh-keys", from_this_computer(add_key), methods=["POST"]),
        Route("/console/ssh-keys", from_this_computer(remove_keys), methods=["DELETE"]),
    ]
