"""Check nodes, network and ranks between preparing and training."""

import json
import threading
import time
from types import SimpleNamespace

from agent import node_facts, preflight_rules
from agent.parallel import parallel
from agent.preflight import MARK
from agent.processes import run_all

STREAMS = (1, 8)
SSH_TIMEOUT_S = 15
FACTS_TIMEOUT_S = 30
BANDWIDTH_TIMEOUT_S = 25
TOGETHER_TIMEOUT_S = 300
"""An allreduce of the larger model takes some ten seconds at the slowest rate that is let pass; ranks that do not reach each other wait for ever."""
TIMED_OUT = (124, 137)
"""What `timeout` ends with, the second where it had to kill."""


class PreflightFailed(Exception):
    """The machines are not what was ordered or cannot work together; the arguments are a sentence and the lines of it."""


def preflight(run):
    """Check everything in less than a minute, keep the table with the run, and raise when something stops it."""
    skipped = run.spec.preflight_skipped
    if skipped:
        row = preflight_rules.row("preflight", "every node", "skipped", skipped, preflight_rules.NOTE)
        run.write("preflight.json", json.dumps({"ranks": [], "rows": [row], "skipped": skipped}) + "\n")
        return
    began = time.monotonic()
    found = {"ranks": [], "mesh": [], "nodes": {}, "bandwidth": [], "allreduce_s": None, "seconds_of": {}}
    found["mesh"] = timed(found, "ssh", lambda: mesh(run))
    if not any(pair["said"] for pair in found["mesh"]):
        found["nodes"] = timed(found, "what each machine has", lambda: nodes(run))
        if all(facts and facts["address"] for facts in found["nodes"].values()):
            found["bandwidth"] = timed(
                found, "bandwidth", lambda: [one for streams in STREAMS for one in bandwidth(run, streams)]
            )
    rows = preflight_rules.judge(found, run.spec)
    if found["bandwidth"] and run.spec.meeting_port:
        rows.append(timed(found, "meeting port", lambda: meeting(run)))
    keep(run, found, rows, began)
    stop(rows)
    rows += timed(found, "every rank and the allreduce", lambda: together(run, found))
    keep(run, found, rows, began)
    stop(rows)


def timed(found, what, act):
    """Return what ``act`` returns; how long it took is kept with what was found."""
    began = time.monotonic()
    answer = act()
    found["seconds_of"][what] = round(time.monotonic() - began, 1)
    return answer


def keep(run, found, rows, began):
    document = dict(found, rows=rows, seconds=round(time.monotonic() - began, 1))
    run.write("preflight.json", json.dumps(document, sort_keys=True) + "\n")


def stop(rows):
    sentence = preflight_rules.sentence(rows)
    if sentence:
        raise PreflightFailed(sentence, [])


def mesh(run):
    """Let every node log in to every other one, as mpirun's daemons do."""
    addresses = run.spec.addresses

    def log_in(pair):
        code, output = run.ask(run.spec.ssh + [pair[1], "true"], SSH_TIMEOUT_S, pair[0], marked=False)
        why = (output.splitlines() or ["exit code " + str(code)])[-1] if code else ""
        return {"from": run.name_of(pair[0]), "to": run.name_of(pair[1]), "said": why}

    # In rounds, so that nobody gets more than one login at a time: sshd turns the eleventh away.
    rounds = [list(zip(addresses, addresses[by:] + addresses[:by])) for by in range(1, len(addresses))]
    return [answer for pairs in rounds for answer in parallel(log_in, pairs)]


def nodes(run):
    """Return {name: facts}; the clock of a node is compared with the middle of the time that its answer took."""

    def look(address):
        asked = time.time()
        code, output = run.ask(node_facts.argv_of(run), FACTS_TIMEOUT_S, address, marked=False)
        answered = time.time()
        if code:
            return None
        facts = json.loads(output.splitlines()[-1])
        return dict(facts, clock_off_s=facts["time"] - (asked + answered) / 2, clock_error_s=(answered - asked) / 2)

    addresses = run.spec.addresses
    return dict(zip((run.name_of(address) for address in addresses), parallel(look, addresses)))


def bandwidth(run, streams):
    """Let every node send to the next one at the same time, as the ring of an allreduce does."""
    addresses, port = run.spec.addresses, str(run.spec.probe_port)
    pairs = list(zip(addresses, addresses[1:] + addresses[:1])) if len(addresses) > 1 else []

    def words(verb, address):
        return run.program("bandwidth", verb, address, port, str(streams))

    def measure(pair):
        sender, receiver = pair
        drain = threading.Thread(
            target=run.ask,
            args=(words("receive", receiver), BANDWIDTH_TIMEOUT_S, receiver, False),
            daemon=True,
        )
        drain.start()
        code, output = run.ask(words("send", receiver), BANDWIDTH_TIMEOUT_S, sender, marked=False)
        drain.join()
        names = {"from": run.name_of(sender), "to": run.name_of(receiver), "streams": streams}
        last = (output.splitlines() or ["no answer"])[-1]
        return dict(names, mbps=None, said=last) if code else dict(names, mbps=float(last))

    return parallel(measure, pairs)


def meeting(run):
    """Let every other node connect to the port of the first one where their processes will meet; the row of it."""
    host, others = run.spec.addresses[0], run.spec.addresses[1:]
    words, said = [host, str(run.spec.meeting_port)], []

    def listen():
        said.append(
            run.ask(run.program("reach", "listen", *words, str(len(others))), SSH_TIMEOUT_S, host, marked=False)
        )

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()

    def connect(address):
        return run.ask(run.program("reach", "connect", *words), SSH_TIMEOUT_S, address, marked=False)

    answers = list(zip(others, parallel(connect, others)))
    listening.join()
    return preflight_rules.meeting(
        run.spec.meeting_port, [(run.name_of(address), answer) for address, answer in [(host, said[0])] + answers]
    )


def together(run, found):
    """Let every rank say where it is and add up the model's size; the rows of it."""
    lines = []
    limit = ["timeout", "--kill-after=10", str(TOGETHER_TIMEOUT_S)]
    bounded = [SimpleNamespace(**dict(vars(one), argv=limit + one.argv)) for one in run.spec.collective]
    code, _ = run_all(run, bounded, lines.append)
    if code in TIMED_OUT:
        raise PreflightFailed(
            "reaching all ranks was not over after {} s; ssh works between all machines, so see that they "
            "reach each other on every port of {}".format(TOGETHER_TIMEOUT_S, run.spec.interface),
            lines[-20:],
        )
    if code:
        raise PreflightFailed("reaching all ranks ended with exit code " + str(code), lines[-20:])
    ranks = [json.loads(line.partition(MARK)[2]) for line in lines if MARK in line]
    ranks.sort(key=lambda rank: rank["rank"])
    found["ranks"] = ranks
    found["allreduce_s"] = max([rank["allreduce_s"] for rank in ranks] or [0])
    return preflight_rules.of_ranks(ranks, run.spec)
