"""Compare what the preflight found with what was ordered (pure).

A row of the table is {check, where, found, wanted, verdict}: "ok"; "note" for what is worth knowing; "stop" for what would
waste the money of the run.
"""

import ipaddress

OK, NOTE, STOP = "ok", "note", "stop"
PORT_STOP, PORT_NOTE = 0.3, 0.8
"""Ports are sold in steps of ten: less than a third of the order is another port, a little less is other traffic."""
CLOCK_NOTE_S, CLOCK_STOP_S = 2.0, 60.0
DRIVER_STOP = 384
"""NVIDIA's images of 2019 run on Tesla cards with 384.111 too, which is older than what is installed."""
SHM_BYTES_OF_RANK = 128 << 20
"""NCCL's buffers between ranks of one machine: up to 16 rings of 4 MB both ways. Docker's default of 64 MB ends in "No space left"."""
MEMLOCK_NOTE_BYTES = 8 << 20
"""A container without --ulimit has 64 kB on Ubuntu 18.04; with sockets NCCL locks little, so that this stops nothing."""
GPUS = "gpus"
"""Among the versions of a rank: how many GPUs its framework sees; None for a framework that needs none."""
MIB_PER_GB = 15 * 64
"""The driver shows a little less than what a GPU is sold with."""


def judge(found, wanted):
    """Return the rows of the table.

    Args:
        found: "mesh" [{from, to, said}], "nodes" {name: facts or None}, "bandwidth" [{from, to, streams, mbps}].
        wanted: the run's specification.
    """
    rows = [_mesh(found["mesh"])]
    for name, address in zip(wanted.names, wanted.addresses):
        facts = found["nodes"].get(name)
        if facts is None:
            rows.append(row("facts", name, "no answer", "an answer", STOP))
            continue
        rows.append(_interface(name, address, facts, wanted.interface))
        rows += _gpus(name, facts, wanted)
        rows += _room(name, facts, wanted)
        rows.append(_clock(name, facts))
        port = "{} free".format(wanted.probe_port)
        rows.append(row("port", name, facts["port"] or "free", port, _if(facts["port"])))
    rows += _alike(found, wanted)
    rows += [_bandwidth(one, wanted.port_speed_mbps) for one in found["bandwidth"]]
    return [one for one in rows if one]


def of_ranks(ranks, wanted):
    """Return the rows on what the ranks said of themselves; ``ranks`` stand in their order."""
    seen = [rank["address"] for rank in ranks]
    rows = [row("ranks", "every rank", ", ".join(seen), ", ".join(wanted.ranks), _if(seen != wanted.ranks))]
    configs = dict(("rank " + str(rank["rank"]), rank["config"]) for rank in ranks)
    rows.append(_same("configuration", configs, "every rank"))
    rows += _software(ranks, wanted)
    seconds = max([rank["allreduce_s"] for rank in ranks] or [0])
    rows.append(row("allreduce", "every rank", "{:.2f} s".format(seconds), _size(wanted.model_bytes) + " summed", OK))
    return rows


def _software(ranks, wanted):
    """Return the rows on what the ranks' framework says of itself, where it says anything."""
    said = [("rank " + str(rank["rank"]), rank.get("versions") or {}) for rank in ranks]
    names = sorted(set(name for _, versions in said for name in versions if name != GPUS))
    rows = [_same(name, dict((who, str(versions.get(name))) for who, versions in said), "every rank") for name in names]
    for who, versions in said:
        seen = versions.get(GPUS, wanted.slots)
        if wanted.gpu and seen is None:
            rows.append(row("GPUs of the program", who, "none: it computes on processors", "GPUs", NOTE))
        elif wanted.gpu and seen < wanted.slots:
            rows.append(row("GPUs of the program", who, seen, "{} or more".format(wanted.slots), STOP))
    return rows


def meeting(port, answers):
    """Return the row on the port where the processes meet; ``answers`` are (node, (exit code, output)), the first node's first."""
    bad = ["{}: {}".format(node, (output.splitlines() or ["no word"])[-1]) for node, (code, output) in answers if code]
    found = ", ".join(bad) or "reached by all"
    return row("meeting port", answers[0][0], found, "{} reached by all".format(port), _if(bad))


def row(check, where, found, wanted, verdict):
    return {"check": check, "where": where, "found": str(found), "wanted": str(wanted), "verdict": verdict}


def sentence(rows):
    """Return what stops the run, or an empty text."""
    bad = [one for one in rows if one["verdict"] == STOP]
    return "; ".join("{check} of {where}: {found} instead of {wanted}".format(**one) for one in bad)


def _if(bad, otherwise=OK):
    return STOP if bad else otherwise


def _mesh(pairs):
    bad = [one for one in pairs if one["said"]]
    found = ", ".join("{from} to {to}: {said}".format(**one) for one in bad)
    return row("ssh", "every pair", found or "{} of {} answer".format(len(pairs), len(pairs)), "an answer", _if(bad))


def _interface(name, address, facts, interface):
    there = facts["address"]
    if there is None:
        found = "no {}; it has {}".format(interface, ", ".join(facts["interfaces"]))
        return row("interface", name, found, interface, STOP)
    bad = there != address or not ipaddress.ip_address(there).is_private
    return row("interface", name, "{} {}".format(interface, there), "private {}".format(address), _if(bad))


def _gpus(name, facts, wanted):
    if not wanted.gpu:
        return []
    gpus = facts["gpus"]
    fits = [one for one in gpus if wanted.gpu in one["name"] and one["memory_mib"] >= wanted.gpu_memory_gb * MIB_PER_GB]
    shown = ", ".join("{name} {memory_mib} MiB".format(**one) for one in gpus) or "none"
    order = "{}x {} with {} GB".format(wanted.slots, wanted.gpu, wanted.gpu_memory_gb)
    rows = [row("GPUs", name, shown, order, _if(len(fits) < wanted.slots))]
    if gpus:
        driver = gpus[0]["driver"]
        branch = driver.split(".")[0]
        major = int(branch) if branch.isdigit() else 0
        verdict = _if(major < DRIVER_STOP, NOTE if major < wanted.driver else OK)
        rows.append(row("driver", name, driver, "{} or newer".format(wanted.driver), verdict))
    return rows


def _room(name, facts, wanted):
    free, needed = facts["free_bytes"], wanted.disk_bytes
    shm, shm_needed = facts["shm_free_bytes"], SHM_BYTES_OF_RANK * wanted.slots
    memlock = facts["memlock_bytes"]
    locked = "unlimited" if memlock is None else _size(memlock)
    little = memlock is not None and memlock < MEMLOCK_NOTE_BYTES
    return [
        row("disk", name, _size(free) + " free", _size(needed), _if(free < needed)),
        row("/dev/shm", name, _size(shm) + " free", _size(shm_needed), _if(shm < shm_needed)),
        row("locked memory", name, locked, _size(MEMLOCK_NOTE_BYTES), NOTE if little else OK),
    ]


def _clock(name, facts):
    off = max(0.0, abs(facts["clock_off_s"]) - facts["clock_error_s"])
    verdict = _if(off > CLOCK_STOP_S, NOTE if off > CLOCK_NOTE_S else OK)
    return row("clock", name, "{:+.1f} s".format(facts["clock_off_s"]), "within {:.0f} s".format(CLOCK_NOTE_S), verdict)


def _alike(found, wanted):
    data = dict((name, facts["data"]) for name, facts in found["nodes"].items() if facts)
    return [_same("image", dict(zip(wanted.names, wanted.images))), _same("data", data)]


def _same(check, values, where="every node"):
    if len(set(values.values())) <= 1:
        return row(check, where, (list(values.values()) or ["none"])[0], "the same", OK)
    shown = ", ".join(name + " " + str(value) for name, value in sorted(values.items()))
    return row(check, where, shown, "the same", STOP)


def _bandwidth(one, ordered):
    where = "{from} to {to}, {streams} stream{}".format("s" if one["streams"] > 1 else "", **one)
    if one["mbps"] is None:
        return row("bandwidth", where, one["said"], "an answer", STOP)
    # One stream alone may be held back by a single window; the port shows with eight.
    share = one["mbps"] / ordered if ordered and one["streams"] > 1 else 1.0
    verdict = _if(share < PORT_STOP, NOTE if share < PORT_NOTE else OK)
    return row("bandwidth", where, "{:.0f} Mb/s".format(one["mbps"]), "{} Mb/s".format(ordered or "any"), verdict)


def _size(count):
    if count >= 1e9:
        return "{:.1f} GB".format(count / 1e9)
    return "{:.0f} MB".format(count / 1e6) if count >= 1e6 else "{:.0f} kB".format(count / 1e3)
