"""Take files out of a tar without trusting it: nothing is written outside the folder."""

import lzma
import os
import tarfile
import zlib

from agent.staging_log import Refused, say

LARGEST_MEMBER_BYTES = 8 * 10**9
BROKEN = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)
PIECE = 1 << 20


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
    except BROKEN as error:
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
            except BROKEN as error:
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
