"""Check nodes, network and ranks between preparing and training, and compare what was found with what was ordered.

A row of the table is {check, where, found, wanted, verdict}: "ok"; "note" for what is worth knowing; "stop" for what would
waste the money of the run.
"""

import ipaddress
import json
import re
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from agent.kill_run import last_line
from agent.launch.probe import MARK, UNUSABLE
from agent.machine import parallel
from agent.nodes import node_facts
from agent.run.context import Run
from agent.run.document import RunDocument
from agent.supervise.health_rules import Failed, cause_of
from agent.supervise.processes import run_all

STREAMS = 8
"""A single one may be held back by its window; the port shows with several."""
MEASUREMENTS = 3
"""Other traffic, or a busy computer under emulated machines, slows one measurement; a wrong port slows all."""
SSH_TIMEOUT_S = 15
FACTS_TIMEOUT_S = node_facts.NVIDIA_SMI_LONGEST_S + 15
LINKS_TIMEOUT_S = 25
TOGETHER_TIMEOUT_S = 300
"""An allreduce of the larger model takes some ten seconds at the slowest rate that is let pass; ranks that do not reach each other wait for ever."""
TIMED_OUT = (124, 137)
"""Exit codes of `timeout`, the second where it had to kill."""
NOT_TOGETHER = (
    "was not over after {} s; ssh works between all machines, so see that they reach each other on every port of {}"
)
OK, NOTE, STOP = "ok", "note", "stop"
PORT_STOP, PORT_NOTE = 0.3, 0.8
"""Ports are sold in steps of ten: less than a third of the order is another port, a little less is other traffic."""
CLOCK_NOTE_S, CLOCK_STOP_S = 2.0, 60.0
MPIRUN, OLDEST_MPI = "mpirun", (3, 0, 0)
"""Open MPI's starter, and its first version with the library of the agent's probe and with all our options."""
MPI_VERSION = r"\(Open MPI\) (\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?"
DRIVER_STOP = 384
"""NVIDIA's images of 2019 run on Tesla cards with 384.111 too, which is older than what is installed."""
SHM_BYTES_OF_RANK = 128 << 20
"""NCCL's buffers between ranks of one machine: up to 16 rings of 4 MB both ways. Docker's default of 64 MB ends in "No space left"."""
MIB_PER_GB = 14 * 64
"""The driver shows less than what a GPU is sold with: with ECC an RTX A6000 of 48 GB has 46068 MiB."""
CURE = "restart it: fab ssh {} -- sudo reboot, then make up; where that does not help: make down, and make up orders another one"
Row = Dict[str, str]


def preflight(run: Run) -> None:
    """Check everything in less than a minute, keep the table with the run, and raise when something stops it."""
    began = time.monotonic()
    found = {"ranks": [], "mesh": [], "nodes": {}, "bandwidth": []}
    noted = [row(*words, note=True) for words in run.notes]
    if run.spec.limits.preflight_skipped:
        skipped = row("preflight", "every node", "skipped", run.spec.limits.preflight_skipped, note=True)
        keep(run, found, noted + [skipped], began)
        return
    found["mesh"] = mesh(run)
    if not any(pair["said"] for pair in found["mesh"]):
        found["nodes"] = nodes(run)
        if all(facts and facts["address"] for facts in found["nodes"].values()):
            found["bandwidth"] = network(run)
    rows = noted + judge(found, run.spec)
    if found["bandwidth"] and run.spec.machines.meeting_port:
        rows.append(meeting(run))
    if run.spec.program.collective and run.spec.program.collective[0].argv[0] == MPIRUN:
        rows.append(open_mpi(run))
    keep(run, found, rows, began)
    found["ranks"] = together(run)
    rows += of_ranks(found["ranks"], run.spec)
    keep(run, found, rows, began)


def keep(run: Run, found: Dict[str, Any], rows: List[Row], began: float) -> None:
    """Keep the table with the run, and raise when a row of it stops the run."""
    document = dict(found, rows=rows, seconds=round(time.monotonic() - began, 1))
    run.write("preflight.json", json.dumps(document, sort_keys=True) + "\n")
    why = sentence(rows)
    if why:
        raise Failed("preflight", why)


def mesh(run: Run) -> List[Dict[str, Any]]:
    """Let every node log in to every other one, as mpirun's daemons do."""
    addresses = run.spec.machines.addresses

    def log_in(pair: Tuple[str, str]) -> Dict[str, Any]:
        sender, receiver = pair
        code, output = run.ask(run.spec.machines.ssh + [receiver, "true"], SSH_TIMEOUT_S, sender, marked=False)
        why = last_line(code, output) if code else ""
        return {"from": run.name_of(sender), "to": run.name_of(receiver), "said": why}

    # In rounds, so that nobody gets more than one login at a time: sshd turns the eleventh away.
    rounds = [list(zip(addresses, addresses[by:] + addresses[:by])) for by in range(1, len(addresses))]
    return [answer for pairs in rounds for answer in parallel(log_in, pairs)]


def nodes(run: Run) -> Dict[str, Optional[Dict[str, Any]]]:
    """Return {name: facts}; the clock of a node is compared with the middle of the time that its answer took."""

    def look(address: str) -> Optional[Dict[str, Any]]:
        asked = time.time()
        words = node_facts.argv_of(run, node_facts.NVIDIA_SMI_LONGEST_S)
        code, output = run.ask(words, FACTS_TIMEOUT_S, address, marked=False)
        answered = time.time()
        if code:
            return None
        facts = json.loads(last_line(code, output))
        return dict(facts, clock_off_s=facts["time"] - (asked + answered) / 2, clock_error_s=(answered - asked) / 2)

    return dict(zip(run.spec.machines.names, parallel(look, run.spec.machines.addresses)))


def network(run: Run) -> List[Dict[str, Any]]:
    """Return the links' measurements; while one of them would stop the run, all are made again, and of each pair the better one counts."""
    best = {}
    for _ in range(MEASUREMENTS):
        for one in bandwidth(run):
            link = (one["from"], one["to"])
            best[link] = max(best.get(link, one), one, key=lambda link: link["mbps"] or 0)
        if all(_bandwidth(one, run.spec.machines.port_speed_mbps)["verdict"] != STOP for one in best.values()):
            break
    return list(best.values())


def bandwidth(run: Run) -> List[Dict[str, Any]]:
    """Let every node send to the next one at the same time, as the ring of an allreduce does."""
    addresses = run.spec.machines.addresses
    pairs = list(zip(addresses, addresses[1:] + addresses[:1])) if len(addresses) > 1 else []

    def measure(pair: Tuple[str, str]) -> Dict[str, Any]:
        sender, receiver = pair
        where = (receiver, run.spec.machines.probe_port, STREAMS)
        drain = threading.Thread(target=ask_links, args=(run, receiver, "receive") + where, daemon=True)
        drain.start()
        code, output = ask_links(run, sender, "send", *where)
        drain.join()
        last = last_line(code, output)
        mbps = None if code else float(last)
        return {"from": run.name_of(sender), "to": run.name_of(receiver), "mbps": mbps, "said": last}

    return parallel(measure, pairs)


def ask_links(run: Run, node: str, *words: Any) -> Tuple[int, str]:
    return run.ask(run.program("nodes.links", *map(str, words)), LINKS_TIMEOUT_S, node, marked=False)


def meeting(run: Run) -> Row:
    """Let every other node connect to the port of the first one where their processes will meet; the row of it."""
    host, port, others = run.spec.machines.addresses[0], run.free_port(), run.spec.machines.addresses[1:]

    def ask(address: str) -> Tuple[int, str]:
        if address == host:
            return ask_links(run, host, "receive", host, port, len(others))
        return ask_links(run, address, "connect", host, port)

    answers = zip(run.spec.machines.names, parallel(ask, run.spec.machines.addresses))
    bad = [name + ": " + last_line(code, output) for name, (code, output) in answers if code]
    found = ", ".join(bad) or "reached by all"
    return row("meeting port", run.spec.machines.names[0], found, "{} reached by all".format(port), stop=bad)


def open_mpi(run: Run) -> Row:
    """Return the row on the version of mpirun on the first node, which compares it with those of the others itself."""
    code, output = run.ask([MPIRUN, "--version"], FACTS_TIMEOUT_S, marked=False)
    version = re.search(MPI_VERSION, output)
    is_known = version and tuple(int(part or 0) for part in version.groups()) >= OLDEST_MPI
    found = (
        version.group()
        if version
        else (output.splitlines() or ["exit code " + str(code)])[0][: node_facts.LONGEST_LINE]
    )
    wanted = "Open MPI {}.{}.{} or newer in container.image".format(*OLDEST_MPI)
    return row(MPIRUN, run.spec.machines.names[0], found, wanted, stop=not is_known)


def together(run: Run) -> List[Dict[str, Any]]:
    """Let every rank say where it is and add up the model's size; return what they said, in the order of the ranks."""
    lines = []
    limit = ["timeout", "--kill-after=10", str(TOGETHER_TIMEOUT_S)]
    bounded = [one._replace(argv=limit + one.argv) for one in run.spec.program.collective]
    code, _ = run_all(run, bounded, lines.append)
    if code:
        why = "ended with exit code {}".format(code)
        if code in TIMED_OUT:
            why = NOT_TOGETHER.format(TOGETHER_TIMEOUT_S, run.spec.machines.interface)
        unusable = [" and a GPU cannot be used on " + line.partition(UNUSABLE)[2] for line in lines if UNUSABLE in line]
        raise Failed(
            cause_of(lines, "preflight"), "reaching all ranks " + "".join([why] + unusable[:1]), 1, lines[-20:]
        )
    ranks = [json.loads(line.partition(MARK)[2]) for line in lines if MARK in line]
    return sorted(ranks, key=lambda rank: rank["rank"])


def judge(found: Dict[str, Any], wanted: RunDocument) -> List[Row]:
    """Return the rows of the table.

    Args:
        found: "mesh" [{from, to, said}], "nodes" {name: facts or None}, "bandwidth" [{from, to, mbps, said}].
        wanted: the run document.
    """
    rows = [_mesh(found["mesh"])]
    for name, address in zip(wanted.machines.names, wanted.machines.addresses):
        facts = found["nodes"].get(name)
        if facts is None:
            rows.append(row("facts", name, "no answer", "an answer", stop=True))
            continue
        rows.append(_interface(name, address, facts, wanted.machines.interface))
        rows += _gpus(name, facts, wanted)
        rows += _room(name, facts, wanted)
        rows.append(_clock(name, facts))
        port = "{} free".format(wanted.machines.probe_port)
        rows.append(row("port", name, facts["port"] or "free", port, stop=facts["port"]))
    data = dict((name, facts["data"]) for name, facts in found["nodes"].items() if facts)
    rows += [_same("image", dict(zip(wanted.machines.names, wanted.machines.images))), _same("data", data)]
    rows += [_bandwidth(one, wanted.machines.port_speed_mbps) for one in found["bandwidth"]]
    return rows


def of_ranks(ranks: List[Dict[str, Any]], wanted: RunDocument) -> List[Row]:
    """Return the rows on what the ranks said of themselves; ``ranks`` stand in their order."""
    seen = [rank["address"] for rank in ranks]
    rows = [
        row(
            "ranks", "every rank", ", ".join(seen), ", ".join(wanted.machines.ranks), stop=seen != wanted.machines.ranks
        )
    ]
    configs = dict(("rank " + str(rank["rank"]), rank["config"]) for rank in ranks)
    rows.append(_same("configuration", configs, "every rank"))
    rows += _software(ranks)
    seconds = max([rank["allreduce_s"] for rank in ranks] or [0])
    rows.append(
        row("allreduce", "every rank", "{:.2f} s".format(seconds), _size(wanted.expected.model_bytes) + " summed")
    )
    return rows


def _software(ranks: List[Dict[str, Any]]) -> List[Row]:
    """Return the rows on what the ranks' framework says of itself, where it says anything."""
    said = [("rank " + str(rank["rank"]), rank.get("versions") or {}) for rank in ranks]
    names = sorted(set(name for _, versions in said for name in versions))
    rows = [_same(name, dict((who, str(versions.get(name))) for who, versions in said), "every rank") for name in names]
    return rows + [
        row("GPU of the program", "rank {rank}".format(**rank), "none: it computes on processors", "a GPU", note=True)
        for rank in ranks
        if not rank.get("on_gpu", True)
    ]


def row(check: str, where: str, found: Any, wanted: Any, *, stop: Any = False, note: Any = False) -> Row:
    verdict = OK
    if note:
        verdict = NOTE
    if stop:
        verdict = STOP
    return {"check": check, "where": where, "found": str(found), "wanted": str(wanted), "verdict": verdict}


def sentence(rows: List[Row]) -> str:
    """Return what stops the run, or an empty text."""
    bad = [one for one in rows if one["verdict"] == STOP]
    return "; ".join("{check} of {where}: {found} instead of {wanted}".format(**one) for one in bad)


def _mesh(pairs: List[Dict[str, Any]]) -> Row:
    bad = [one for one in pairs if one["said"]]
    found = ", ".join("{from} to {to}: {said}".format(**one) for one in bad)
    return row("ssh", "every pair", found or "{} of {} answer".format(len(pairs), len(pairs)), "an answer", stop=bad)


def _interface(name: str, address: str, facts: Dict[str, Any], interface: str) -> Row:
    there = facts["address"]
    if there is None:
        found = "no {}; it has {}".format(interface, ", ".join(facts["interfaces"]))
        return row("interface", name, found, interface, stop=True)
    bad = there != address or not ipaddress.ip_address(there).is_private
    return row("interface", name, "{} {}".format(interface, there), "private {}".format(address), stop=bad)


def _gpus(name: str, facts: Dict[str, Any], wanted: RunDocument) -> List[Row]:
    if not wanted.machines.gpu:
        return []
    gpus, words, code = facts["gpus"], facts["gpu_words"], facts["gpu_code"]
    said = ["{} (nvidia-smi, exit code {})".format(words, code)] if words or code else []
    order = "{}x {} with {} GB".format(wanted.machines.slots, wanted.machines.gpu, wanted.machines.gpu_memory_gb)
    least_mib = wanted.machines.gpu_memory_gb * MIB_PER_GB
    fits = [one for one in gpus if wanted.machines.gpu in one["name"] and (one["memory_mib"] or least_mib) >= least_mib]
    faults = [one["fault"] for one in gpus if one["fault"]]
    shown = ", ".join("{name} {memory_mib} MiB".format(**one) for one in gpus).replace("None", "unknown") or "none"
    if faults or len(fits) < wanted.machines.slots:
        cure = [CURE.format(name)] if faults or said else []
        rows = [row("GPUs", name, "; ".join([shown] + faults + said + cure), order, stop=True)]
    else:
        rows = [row("GPUs", name, shown, order)] + [row("nvidia-smi", name, one, "no words", note=True) for one in said]
    if gpus:
        driver = gpus[0]["driver"]
        branch = driver.split(".")[0]
        major = int(branch) if branch.isdigit() else 0
        newer = "{} or newer".format(wanted.machines.driver)
        rows.append(row("driver", name, driver, newer, stop=major < DRIVER_STOP, note=major < wanted.machines.driver))
    return rows


def _room(name: str, facts: Dict[str, Any], wanted: RunDocument) -> List[Row]:
    free, needed = facts["free_bytes"], wanted.limits.disk_bytes
    shm, shm_needed = facts["shm_free_bytes"], SHM_BYTES_OF_RANK * wanted.machines.slots
    return [
        row("disk", name, _size(free) + " free", _size(needed), stop=free < needed),
        row("/dev/shm", name, _size(shm) + " free", _size(shm_needed), stop=shm < shm_needed),
    ]


def _clock(name: str, facts: Dict[str, Any]) -> Row:
    off = max(0.0, abs(facts["clock_off_s"]) - facts["clock_error_s"])
    shown, limit = "{:+.1f} s".format(facts["clock_off_s"]), "within {:.0f} s".format(CLOCK_NOTE_S)
    return row("clock", name, shown, limit, stop=off > CLOCK_STOP_S, note=off > CLOCK_NOTE_S)


def _same(check: str, values: Mapping[str, Any], where: str = "every node") -> Row:
    if len(set(values.values())) > 1:
        shown = ", ".join("{} {}".format(*pair) for pair in sorted(values.items()))
        return row(check, where, shown, "the same", stop=True)
    return row(check, where, next(iter(values.values()), "none"), "the same")


def _bandwidth(one: Dict[str, Any], ordered: Optional[int]) -> Row:
    where = "{from} to {to}".format(**one)
    if one["mbps"] is None:
        return row("bandwidth", where, one["said"], "an answer", stop=True)
    share = one["mbps"] / ordered if ordered else 1.0
    shown, wanted = "{:.0f} Mb/s".format(one["mbps"]), "{} Mb/s".format(ordered or "any")
    return row("bandwidth", where, shown, wanted, stop=share < PORT_STOP, note=share < PORT_NOTE)


def _size(count: float) -> str:
    return "{:.1f} GB".format(count / 1e9) if count >= 1e9 else "{:.0f} MB".format(count / 1e6)
