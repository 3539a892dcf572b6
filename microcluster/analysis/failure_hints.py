"""The next command after a failure, by its cause; agent/supervise/health_rules.py names the causes."""

from microcluster.analysis.run_state import Outcome

GO_ON = "fab resume --stack {stack} continues from the newest whole checkpoint"
START_OVER = "fab resume --stack {stack} starts over, because its program writes no checkpoints"
LOOK = "fab logs --stack {stack}"
NEXT = {
    "nan": "Set precision: fp32 or a smaller model in the stack file, then: make up STACK={stack}. {go_on}",
    "stalled": "If it was only silent, raise job.stallS in the stack file; in mixed precision set precision: fp32. Then: make up STACK={stack}; else {go_on}",
    "rank-died": "Fix what its last lines say; signal 9 mostly means too little memory. Then {go_on}",
    "told-to-end": "See what ended it: a restart of the machine, its queue, or a person. {go_on}",
    "node-lost": "make up STACK={stack} checks the account, replaces a lost machine and continues",
    "drive-lost": "See whether the drive answers: fab ssh gpu-0 --stack {stack} -- df -h; make up STACK={stack} looks for it in the account, and continues once it does",
    "disk-full": "Make room where it is full, for example: fab ssh gpu-0 --stack {stack} -- df -h /data; then {go_on}",
    "quota-exceeded": "Make room below your quota, or point the run at another folder; see both: fab ssh gpu-0 --stack {stack} -- 'quota -s; df -h'. Then {go_on}",
    "shared-memory-full": "See what fills it: fab ssh gpu-0 --stack {stack} -- df -h /dev/shm; our containers have 1 GiB of it (--shm-size). "
    "Use fewer loader workers, or NCCL_SHM_DISABLE: '1' in job.environment, then: make up STACK={stack}",
    "gpu-memory": "Use a smaller batch or model, or precision: mixed where the program takes it, then: make up STACK={stack}. See who else has memory "
    "there: fab ssh gpu-0 --stack {stack} -- nvidia-smi",
    "gpu-lost": "Only a restart of the machine may bring the card back, if anything: fab ssh gpu-0 --stack {stack} -- nvidia-smi shows it. Give back the "
    "machine, or restart it, then {go_on}",
    "gpu-reset": "Restart the machine (fab ssh gpu-0 --stack {stack} -- nvidia-smi says whether a card asks for it), then {go_on}",
    "driver-too-old": "Name an image or requirements for an older CUDA in the stack file, then: make up STACK={stack}; the driver's version: "
    "fab ssh gpu-0 --stack {stack} -- nvidia-smi",
    "port-taken": "fab resume --stack {stack} chooses another port for where the ranks meet; a port that the program chooses itself is changed in job.arguments. "
    "Who listens: fab ssh gpu-0 --stack {stack} -- ss -ltnp",
    "host-unknown": "See whether the machine knows the name: fab ssh gpu-0 --stack {stack} -- getent hosts NAME; ranks need no names, and machines "
    "without the internet need all files beforehand. Then {go_on}",
    "launcher-lost": "See whether each machine answers: fab status --stack {stack} --preflight; make up STACK={stack} replaces a lost machine and continues",
    "disk-low": "Make room: fab ssh gpu-0 --stack {stack} -- du -xhd2 /data/container",
    "progress-unread": "The program goes on; see what it prints: {look}, and correct job.progress in the stack file",
    "gpus-at-rest": "Check whether it still trains: fab logs --follow --stack {stack}; stop it: fab stop --stack {stack}",
    "gpus-unread": "Ask the tool itself on that machine, for example: fab ssh gpu-1 --stack {stack} -- nvidia-smi; the program may go on",
    "hung": "See what it does: fab logs --follow --stack {stack}; if it hangs, stop it: fab stop --stack {stack}. Then {go_on}",
    "lease-over": "Bring the run home and stop the bill: make down STACK={stack} FETCH=1; or rent for longer: fab extend --hours 6 --stack {stack}, then {go_on}",
    "idle": "See why nothing happened: {look}. Bring the run home and stop the bill: make down STACK={stack} FETCH=1; or {go_on}",
    "slow": "See where the time goes: fab report --stack {stack}; stop paying for it: make down STACK={stack} FETCH=1",
    "not-copied": "If the first machine is lost now, the run is lost; see whether the other one, or the drive, is full: fab ssh gpu-1 --stack {stack}",
    "not-saved": "See what the program has written: fab ssh gpu-0 --stack {stack} -- ls -R /data/container/runs; then correct job.checkpoints, or let the "
    "program save in {{logdir}}: make up STACK={stack} begins again with it",
    "supervisor-gone": "{go_on}, and first ends the processes of the old attempt",
    "supervisor-silent": "fab stop --stack {stack}, then {go_on}",
    "not-brought-back": "fab resume --stack {stack} gives every machine the ranks' keys again and asks once more; make up STACK={stack} replaces a lost machine",
    "preparing-stalled": "Check the disk of the named node: fab ssh gpu-0 --stack {stack} -- df -h /data; then {go_on}",
    "preparing": "See what failed: {look}. {go_on}",
    "training": "See how it ended: {look}. {go_on}",
    "supervisor-failed": "See what it was: {look}. {go_on}",
    "placing": "fab resume --stack {stack} gives every machine the ranks' keys and missing files again",
    "environment": "Mend job.requirements or the repository in the stack file, then: make up STACK={stack}",
    "setup": "Mend job.setup or job.requirements in the stack file, then: make up STACK={stack}; where the line may go well the next time: "
    "fab resume --stack {stack} begins with it",
    "shared-folder": "See the drive on each machine: fab ssh gpu-0 --stack {stack} -- df -h; then {go_on}",
    "walltime": "make up STACK={stack} submits the rest",
    "queue": "See what the queue says of the job: {look}; then make up STACK={stack} submits it again",
    "preflight": "Fix what the table names, then: make up STACK={stack}",
    "incomplete": "See how it ended: {look}. {go_on}",
}


def next_step(outcome: Outcome, stack: str) -> str:
    """Return the next command for a run in this state."""
    usual = "See why: {look}. Continue: fab resume --stack {stack}. Stop the bill: make down STACK={stack}"
    advice = NEXT.get(outcome.cause or "", usual)
    go_on = GO_ON if outcome.saves else START_OVER
    return advice.format(stack=stack, go_on=go_on.format(stack=stack), look=LOOK.format(stack=stack))


def next_for(cause: str, stack: str) -> str:
    """Return the next step after an alarm."""
    return next_step(Outcome("running", cause=cause), stack) + "."
