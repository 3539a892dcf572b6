"""What can be wrong with a run, and what a person does next; the words of a cause are those of agent/health_rules.py."""

from __future__ import annotations

from microcluster.analysis.run_state import Outcome

GO_ON = "fab resume --stack {stack} goes on from the newest whole checkpoint"
LOOK = "fab logs --stack {stack}"
NEXT = {
    "nan": "Take precision: fp32 or a smaller model in the stack file, then: make up STACK={stack}. " + GO_ON,
    "stalled": "Where precision is mixed, take precision: fp32, then: make up STACK={stack}; else " + GO_ON,
    "rank-died": "Mend what its last lines say; signal 9 is most often too little memory. Then " + GO_ON,
    "node-lost": "make up STACK={stack} looks at the account, replaces a machine that is gone and goes on",
    "disk-full": "Make room where it is full, for example: fab ssh gpu-0 --stack {stack} -- df -h /data; then " + GO_ON,
    "disk-low": "Make room: fab ssh gpu-0 --stack {stack} -- du -xhd1 /data/runs",
    "gpus-at-rest": "See whether it still trains: fab logs --follow --stack {stack}; stop it: fab stop --stack {stack}",
    "slow": "See where the time goes: fab report --stack {stack}; stop paying for it: make down STACK={stack} FETCH=1",
    "not-copied": "Losing the first machine would now lose the run; see the other one: fab ssh gpu-1 --stack {stack}",
    "supervisor-gone": GO_ON + ", and ends what is left of the old attempt first",
    "supervisor-silent": "fab stop --stack {stack}, then " + GO_ON,
    "not-brought-back": "fab resume --stack {stack} gives every machine the keys of the ranks again and asks once more; "
    "make up STACK={stack} replaces a machine that is gone",
    "preparing-stalled": "See the disk of the node that it names: fab ssh gpu-0 --stack {stack} -- df -h /data; then "
    + GO_ON,
    "placing": "fab resume --stack {stack} gives every machine the keys of the ranks again and brings what it lacks",
    "preflight": "Mend what the table says, then: make up STACK={stack}",
    "incomplete": "See how it ended: " + LOOK + ". " + GO_ON,
}


def next_step(outcome: Outcome, stack: str) -> str:
    """Return the next command for how a run stands."""
    usual = "See why: " + LOOK + ". Go on: fab resume --stack {stack}. Stop the bill: make down STACK={stack}"
    return NEXT.get(outcome.cause or "", usual).format(stack=stack)


def next_for(cause: str, stack: str) -> str:
    """Return what to do about an alarm."""
    return next_step(Outcome("running", cause=cause), stack) + "."
