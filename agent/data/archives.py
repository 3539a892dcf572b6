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

from agent.data.stages import Progress, Refused, say, write_json
from agent.machine import hash_of, read_json

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
BROKEN = (OSError, HTTPException, socket.timeout, ssl.SSLError)
LARGEST_MEMBER_BYTES = 8 * 10**9
BROKEN_TAR = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)


def refuse_scheme(address, schemes):
    """Raise unless the address may be asked."""
    scheme = urllib.parse.urlsplit(address).scheme
    if scheme not in schemes:
        followed = "fetching {}: only {} is followed, not {!r}"
        raise Refused(followed.format(without_query(address), " and ".join(schemes), scheme))


def without_query(address):
    """Return an address as it may stand in a log; what follows a question mark may be somebody's signature."""
    return address.partition("?")[0].partition("#")[0]


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to where we would have gone ourselves."""

    max_redirections = REDIRECTS

    def __init__(self, schemes):
        self.schemes = schemes

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # noqa: PLR0917 - the library's own
        refuse_scheme(newurl, self.schemes)
        return urllib.request.HTTPRedirectHandler.redirect_request(self, req, fp, code, msg, headers, newurl)


class Fetcher:
    """Fetches archives into a folder; ``records`` is the file that remembers what each address gave."""

    def __init__(self, folder, records, schemes=("https",), sleep=time.sleep, clock=time.monotonic):
        self.folder, self.records, self.schemes, self.sleep, self.clock = folder, records, schemes, sleep, clock
        self.opener = urllib.request.build_opener(Redirects(schemes))
        os.makedirs(folder, exist_ok=True)

    def fetch(self, archive):
        """Have the archive whole; return its path."""
        path = os.path.join(self.folder, archive["name"])
        if os.path.exists(path) and not self._flaw(archive, path):
            say(archive["name"] + ": is there already")
            return path
        fresh = not os.path.exists(path + ".part")
        self._bring(archive, path + ".part")
        flaw = self._flaw(archive, path + ".part")
        if flaw and not fresh:  # What an earlier try has left may be of another day.
            say(archive["name"] + ": " + flaw + "; once more from its beginning")
            self._forget(path + ".part")
            self._bring(archive, path + ".part")
            flaw = self._flaw(archive, path + ".part")
        if flaw:
            self._forget(path + ".part")
            raise Refused(
                "checking {} of {}: {}. Nothing of it is used. If its publisher has changed it on purpose, remove its entry "
                "from {} or change what is pinned.".format(
                    archive["name"], without_query(archive["address"]), flaw, self.records
                )
            )
        self._remember(archive, path + ".part")
        os.rename(path + ".part", path)
        self._forget(path + ".part")
        return path

    def _flaw(self, archive, path):
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

    def _remember(self, archive, path):
        records = read_json(self.records)
        found = {"bytes": os.path.getsize(path), "sha256": hash_of(path)}
        records[without_query(archive["address"])] = found
        os.makedirs(os.path.dirname(self.records), exist_ok=True)
        write_json(self.records, records)
        say("{}: {} bytes, sha256 {}".format(archive["name"], found["bytes"], found["sha256"]))

    def _forget(self, part):
        for path in (part, part + ".of"):
            if os.path.exists(path):
                os.remove(path)

    def _bring(self, archive, part):
        """Have every byte in the file ``part``, in as many connections as it takes and the limits allow."""
        if archive["address"].startswith("file:///"):
            self._copy(archive["address"][len("file://") :], part)
            return
        refuse_scheme(archive["address"], self.schemes)
        what, source = "fetching " + archive["name"], without_query(archive["address"])
        if size_of(part) and size_of(part) == read_json(part + ".of").get("bytes"):
            return  # Only its check had not come.
        idle, deadline, broken = 0, self.clock() + LONGEST_S, ""
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
            if idle >= TRIES or self.clock() >= deadline:
                gave_up = "{} from {}: gave up at {} bytes, last: {}. The next start goes on there."
                raise Refused(gave_up.format(what, source, size_of(part), broken))
            say("{}: {} at {} bytes; going on there".format(what, broken, size_of(part)))
            self.sleep(2 ** max(0, idle - 1))

    def _copy(self, source, part):
        if not os.path.isfile(source):
            raise Refused("taking " + source + ": it is not there")
        self._forget(part)
        try:
            os.link(source, part)
        except OSError:  # It lies on another disk.
            shutil.copyfile(source, part)

    def _one_connection(self, archive, part, progress, deadline):
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
                while True:
                    piece = answer.read(PIECE)
                    if not piece:
                        break
                    file.write(piece)
                    progress.at(file.tell())
                    if file.tell() > archive["most_bytes"]:
                        raise Refused(too_large(archive, file.tell()))
                    if self.clock() >= deadline:
                        return False
        return total is None or size_of(part) >= total

    def _begin(self, answer, part, start, known):
        """Return where the bytes of an answer belong, and how many there are in all if it says so."""
        validator = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        if validator and validator.startswith("W/"):  # It is not for the bytes.
            validator = None
        length = answer.headers.get("Content-Length")
        total = int(length) if length and length.isdigit() else None
        if answer.getcode() == 206:
            match = RANGE.match(answer.headers.get("Content-Range") or "")
            if not match or int(match.group(1)) != start or match.group(2) != str(known.get("bytes")):
                self._forget(part)
                raise OSError("it answered with another part than was asked for")
            return start, known["bytes"]
        write_json(part + ".of", {"validator": validator if total is not None else None, "bytes": total})
        return 0, total


def too_large(archive, size):
    return "fetching {} from {}: it has {} bytes, more than the {} that such an archive may have".format(
        archive["name"], without_query(archive["address"]), size, archive["most_bytes"]
    )


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def name_of(member):
    return os.path.normpath(member.name)


def flaw(member):
    """Return why a member must not be unpacked, or an empty text."""
    if member.name.startswith("/") or ".." in member.name.split("/"):
        return "its path leads out of the folder"
    if not (member.isfile() or member.isdir()):
        return "it is no plain file"
    if member.size > LARGEST_MEMBER_BYTES:
        return "it has " + str(member.size) + " bytes"
    return ""


def members(path):
    """Yield (archive, member) of a tar in one pass, compressed or not."""
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                yield archive, member
    except BROKEN_TAR as error:
        raise broken(path, error) from error


def take(path, wanted):
    """Write the members that {name: path} names to their paths; every one of them has to be there, as a plain file."""
    left = dict(wanted)
    say("unpacking " + os.path.basename(path) + " ...")
    for archive, member in members(path):
        target = left.get(name_of(member))
        if target is None:
            continue
        if flaw(member) or not member.isfile():
            raise refusal(path, member)
        write(path, archive, member, target)
        del left[name_of(member)]
        if not left:
            return
    raise Refused("unpacking " + os.path.basename(path) + ": it does not hold " + ", ".join(sorted(left)))


def take_flat(path, required, optional, folder):
    """Write the named files of a tar, from whatever folder in it, to ``folder``; one bad member and nothing is used."""
    found = {}
    say("unpacking " + os.path.basename(path) + " ...")
    for archive, member in members(path):
        if flaw(member):
            raise refusal(path, member)
        name = os.path.basename(name_of(member))
        if not member.isfile() or name not in required + optional:
            continue
        if name in found:
            raise Refused("unpacking " + os.path.basename(path) + ": it holds " + name + " twice")
        found[name] = os.path.join(folder, name)
        write(path, archive, member, found[name])
    missing = sorted(set(required) - set(found))
    if missing:
        raise Refused("unpacking " + os.path.basename(path) + ": it does not hold " + ", ".join(missing))
    return sorted(found)


def write(path, archive, member, target):
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


def broken(path, why):
    return Refused("unpacking " + os.path.basename(path) + ": it is no whole tar (" + str(why) + ")")


def refusal(path, member):
    why = flaw(member) or "it is no file"
    refused = "unpacking {}: {!r} is refused, for {}. Nothing of it is used."
    return Refused(refused.format(os.path.basename(path), member.name, why))
