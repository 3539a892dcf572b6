"""Download an archive: resume where a connection broke, never leave https, compare with what is known of it.

What an archive is, size and hash, is written down when it is first seen; the
same address must give the same ever after.

Files are taken out of a tar without trusting it: nothing is written outside the folder.
"""

import lzma
import os
import re
import shutil
import socket
import ssl
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from http.client import HTTPException
from typing import Any, Callable, Dict, Iterable, Iterator, Optional, Tuple

from agent.data.progress import Progress, Refused, say
from agent.machine import hash_of, read_json, write_json

SCHEME = "https"
SILENCE_S = 60
TRIES = 6
"""In a row without one more byte; between them are pauses that double from one second."""
LONGEST_S = 6 * 3600
REDIRECTS = 5
PIECE = 1 << 18
MEGABYTE = 10**6
RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)$")
AGAIN = (408, 416, 429)
"""Too slow; nothing more to give from where we asked; too often."""
CHANGED = (
    "checking {} of {}: {}. Nothing of it is used. If its publisher has changed it on purpose, remove its entry from {} or "
    "change what is pinned."
)
BROKEN = (OSError, HTTPException, socket.timeout, ssl.SSLError)
LARGEST_MEMBER_BYTES = 10**11
ODD_NAME = re.compile(
    r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]|[^/]{256}|.{2049}"
)  # No UTF-8, the end of a line of sums, too long.
BROKEN_TAR = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)


def refuse_scheme(address: str) -> None:
    """Raise unless the address may be asked."""
    scheme = urllib.parse.urlsplit(address).scheme
    if scheme != SCHEME:
        followed = "fetching {}: only {} is followed, not {!r}"
        raise Refused(followed.format(without_query(address), SCHEME, scheme))


def without_query(address: str) -> str:
    """Return an address as it may stand in a log; what follows a question mark may be somebody's signature."""
    return address.partition("?")[0].partition("#")[0]


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to where we would have gone ourselves."""

    max_redirections = REDIRECTS

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:  # noqa: PLR0917 - the library's own
        refuse_scheme(newurl)
        return urllib.request.HTTPRedirectHandler.redirect_request(self, req, fp, code, msg, headers, newurl)


class Fetcher:
    """Fetches archives into a folder; ``records`` is the file that remembers what each address gave."""

    def __init__(self, folder: str, records: str) -> None:
        self.folder, self.records = folder, records
        self.opener = urllib.request.build_opener(Redirects)
        os.makedirs(folder, exist_ok=True)

    def fetch(self, archive: Dict[str, Any]) -> str:
        """Have the archive whole; return its path."""
        path = os.path.join(self.folder, archive["name"])
        if os.path.exists(path) and not self._flaw(archive, path):
            say(archive["name"] + ": is there already")
            return path
        part = path + ".part"
        for is_rest in (os.path.exists(part), False):
            self._bring(archive, part)
            flaw = self._flaw(archive, part)
            if not flaw:
                break
            self._forget(part)
            if not is_rest:
                what, source = archive["name"], without_query(archive["address"])
                raise Refused(CHANGED.format(what, source, flaw, self.records))
            # What an earlier try has left may be of another day.
            say(archive["name"] + ": " + flaw + "; once more from its beginning")
        self._remember(archive, part)
        os.rename(part, path)
        self._forget(part)
        return path

    def _flaw(self, archive: Dict[str, Any], path: str) -> str:
        """Return what of a whole file is not as pinned or as it was at first, or an empty text."""
        known = dict(read_json(self.records).get(without_query(archive["address"]), {}))
        known.update((kind, archive[kind]) for kind in ("bytes", "sha256", "md5") if archive.get(kind))
        size = os.path.getsize(path)
        if known.get("bytes", size) != size:
            return "it has {} bytes instead of {}".format(size, known["bytes"])
        for kind in ("sha256", "md5"):
            if kind in known and hash_of(path, kind) != known[kind]:
                return "its {} is {} instead of {}".format(kind, hash_of(path, kind), known[kind])
        return ""

    def _remember(self, archive: Dict[str, Any], path: str) -> None:
        records = read_json(self.records)
        found = {"bytes": os.path.getsize(path), "sha256": hash_of(path)}
        records[without_query(archive["address"])] = found
        os.makedirs(os.path.dirname(self.records), exist_ok=True)
        write_json(self.records, records)
        say("{}: {} bytes, sha256 {}".format(archive["name"], found["bytes"], found["sha256"]))

    def _forget(self, part: str) -> None:
        for path in (part, part + ".of"):
            if os.path.exists(path):
                os.remove(path)

    def _bring(self, archive: Dict[str, Any], part: str) -> None:
        """Have every byte in the file ``part``, in as many connections as it takes and the limits allow."""
        if archive["address"].startswith("file:///"):
            self._copy(archive["address"][len("file://") :], part)
            return
        refuse_scheme(archive["address"])
        what, source = "fetching " + archive["name"], without_query(archive["address"])
        if size_of(part) and size_of(part) == read_json(part + ".of").get("bytes"):
            return  # Only its check had not come.
        idle, deadline, broken = 0, time.monotonic() + LONGEST_S, ""
        progress = Progress(what, None, "MB", MEGABYTE)
        while True:
            before = size_of(part)
            try:
                if self._one_connection(archive, part, progress, deadline):
                    progress.over(size_of(part))
                    return
                broken = "the connection ended early"
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code not in AGAIN:
                    answered = "{} from {}: answered {} {}"
                    raise Refused(answered.format(what, source, error.code, error.reason)) from error
                broken = "answered " + str(error.code)
            except BROKEN as error:
                broken = str(getattr(error, "reason", None) or error) or type(error).__name__
            idle = 0 if size_of(part) > before else idle + 1
            if idle >= TRIES or time.monotonic() >= deadline:
                gave_up = "{} from {}: gave up at {} bytes, last: {}. The next start goes on there."
                raise Refused(gave_up.format(what, source, size_of(part), broken))
            say("{}: {} at {} bytes; going on there".format(what, broken, size_of(part)))
            time.sleep(2 ** max(0, idle - 1))

    def _copy(self, source: str, part: str) -> None:
        if not os.path.isfile(source):
            raise Refused("taking " + source + ": it is not there")
        self._forget(part)
        try:
            os.link(source, part)
        except OSError:  # It lies on another disk.
            shutil.copyfile(source, part)

    def _one_connection(self, archive: Dict[str, Any], part: str, progress: Progress, deadline: float) -> bool:
        """Append what comes; return whether the file is complete."""
        known = read_json(part + ".of")
        start, validator = size_of(part), known.get("validator")
        headers = {"User-Agent": "microcluster", "Accept-Encoding": "identity"}
        if start and validator:
            headers.update({"Range": "bytes=" + str(start) + "-", "If-Range": validator})
        else:
            start = 0  # Without a validator nobody says that it still is the same file.
        try:
            answer = self.opener.open(urllib.request.Request(archive["address"], headers=headers), timeout=SILENCE_S)
        except urllib.error.HTTPError as error:
            if error.code == 416:
                self._forget(part)
            raise
        with answer:
            start, total = self._begin(answer, part, start, known)
            if total is not None and total > archive["most_bytes"]:
                raise Refused(too_large(archive, total))
            progress.total = total
            with open(part, "ab") as file:
                file.truncate(start)
                for piece in iter(lambda: answer.read(PIECE), b""):
                    file.write(piece)
                    progress.at(file.tell())
                    if file.tell() > archive["most_bytes"]:
                        raise Refused(too_large(archive, file.tell()))
                    if time.monotonic() >= deadline:
                        return False
        return total is None or size_of(part) >= total

    def _begin(self, answer: Any, part: str, start: int, known: Dict[str, Any]) -> Tuple[int, Optional[int]]:
        """Return where the bytes of an answer belong, and how many there are in all if it says so."""
        validator = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        length = answer.headers.get("Content-Length") or ""
        total = int(length) if length.isdigit() else None
        if answer.getcode() == 206:
            match = RANGE.match(answer.headers.get("Content-Range") or "")
            if not match or int(match.group(1)) != start or match.group(2) != str(known.get("bytes")):
                self._forget(part)
                raise OSError("it answered with another part than was asked for")
            return start, known["bytes"]
        is_weak = validator.startswith("W/")  # It is not for the bytes.
        write_json(part + ".of", {"validator": "" if is_weak or total is None else validator, "bytes": total})
        return 0, total


def too_large(archive: Dict[str, Any], size: int) -> str:
    return "fetching {} from {}: it has {} bytes, more than the {} that such an archive may have".format(
        archive["name"], without_query(archive["address"]), size, archive["most_bytes"]
    )


def size_of(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def flaw(member: tarfile.TarInfo) -> str:
    """Return why a member must not be written, or an empty text."""
    if not member.isfile():
        return "it is no plain file"
    if ODD_NAME.search(member.name):
        return "the machines cannot hold its name"
    return "it has {} bytes".format(member.size) if member.size > LARGEST_MEMBER_BYTES else ""


def members(path: str) -> Iterator[Tuple[tarfile.TarFile, tarfile.TarInfo, str]]:
    """Yield (archive, member, its path) of a tar in one pass, compressed or not; none leads out of the folder."""
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                if member.name.startswith("/") or ".." in member.name.split("/"):
                    raise refusal(path, member, "its path leads out of the folder")
                yield archive, member, os.path.normpath(member.name)
    except BROKEN_TAR as error:
        raise broken(path, error) from error


def take(path: str, target_of: Callable[[str], Optional[str]], needed: Iterable[str]) -> None:
    """Write each member of a tar to where ``target_of`` says by its path, or nowhere; all targets ``needed`` have to come, each once."""
    written = set()
    say("unpacking " + os.path.basename(path) + " ...")
    for archive, member, name in members(path):
        target = target_of(name)
        if target is None or member.isdir():
            continue
        if flaw(member):
            raise refusal(path, member, flaw(member))
        if target in written:
            raise Refused("unpacking {}: it holds {} twice".format(os.path.basename(path), os.path.basename(name)))
        write(path, archive, member, target)
        written.add(target)
    missing = sorted(os.path.basename(target) for target in set(needed) - written)
    if missing or not written:
        raise Refused(
            "unpacking {}: it does not hold {}".format(os.path.basename(path), ", ".join(missing) or "any file")
        )


def bytes_of_all(path: str) -> int:
    """Return the bytes of the files of a tar; raise where it cannot be unpacked whole."""
    sizes = {}
    for _, member, name in members(path):
        why = "" if member.isdir() else flaw(member) or ("it is there twice" if name in sizes else "")
        if why:
            raise refusal(path, member, why)
        sizes[name] = member.size
    if not any(sizes.values()):
        raise Refused("looking through {}: nothing is in it".format(os.path.basename(path)))
    return sum(sizes.values())


def write(path: str, archive: tarfile.TarFile, member: tarfile.TarInfo, target: str) -> None:
    """Let the file ``target`` hold the bytes of a member."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target):
        os.remove(target)
    source = archive.extractfile(member)
    with open(target, "wb") as file:
        while file.tell() < member.size:
            try:
                piece = source.read(PIECE)
            except BROKEN_TAR as error:
                raise broken(path, error) from error
            if not piece:
                raise broken(path, "it ends in the middle of " + member.name)
            file.write(piece)


def broken(path: str, why: Any) -> Refused:
    return Refused("unpacking " + os.path.basename(path) + ": it is no whole tar (" + str(why) + ")")


def refusal(path: str, member: tarfile.TarInfo, why: str) -> Refused:
    refused = "unpacking {}: {!r} is refused, for {}. Nothing of it is used."
    return Refused(refused.format(os.path.basename(path), member.name, why))
