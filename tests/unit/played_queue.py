"""A queue's commands as scripts on the path: its jobs are lines of a file, `NUMBER NAME STATE QUEUE [USER]`, which a test may write."""

from pathlib import Path

QSTAT = """#!/bin/sh
echo 'Job id              Name             Username        Time Use S Queue          '
echo '------------------- ---------------- --------------- -------- - ---------------'
while read -r number name state queue user; do
  echo "$number $name ${user:-$(id -un)} 00:00:00 $state $queue"
done <"$PLAYED_QUEUE/jobs"
"""
QSUB = """#!/bin/sh
touch "$PLAYED_QUEUE/begun"
[ ! -e "$PLAYED_QUEUE/refusal" ] || { cat "$PLAYED_QUEUE/refusal"; exit 1; }
[ ! -e "$PLAYED_QUEUE/slow" ] || sleep "$(cat "$PLAYED_QUEUE/slow")"
number=$((100 + $(wc -l <"$PLAYED_QUEUE/jobs")))
echo "$@" >>"$PLAYED_QUEUE/submitted"
while [ $# -gt 1 ]; do case $1 in -N) name=$2;; -q) queue=$2;; esac; shift; done
[ ! -e "$PLAYED_QUEUE/twice" ] || { echo "$number $name Q $queue" >>"$PLAYED_QUEUE/jobs"; number=$((number + 1)); }
echo "$number $name Q $queue" >>"$PLAYED_QUEUE/jobs"
echo "$number.master"
"""
QDEL = """#!/bin/sh
sed -i -E "s/^($1 [^ ]+) . /\\1 C /" "$PLAYED_QUEUE/jobs"
"""
REQUEST = {
    "name": "mc1f3a9c4200e11",
    "stack": "dev",
    "mark": "1f3a9c42",
    "run": "00e11aabbccd",
    "queue": "gpu",
    "nodes": 2,
    "processors": 4,
    "walltime": 7200,
    "interface": "eth0",
}


class PlayedQueue:
    """The queue, and a run's folder with what is asked for it."""

    def __init__(self, tmp_path: Path, monkeypatch) -> None:
        self.here, self.folder, self.home = tmp_path / "queue", tmp_path / "runs" / "00e11aabbccd", tmp_path / "home"
        for folder in (self.here, self.folder, self.home):
            folder.mkdir(parents=True)
        for name, text in (("qstat", QSTAT), ("qsub", QSUB), ("qdel", QDEL)):
            (self.here / name).write_text(text)
            (self.here / name).chmod(0o755)
        (self.here / "jobs").write_text("")
        self.request = {**REQUEST, "folder": str(self.folder)}
        monkeypatch.setenv("PLAYED_QUEUE", str(self.here))
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.setenv("PATH", f"{self.here}:/usr/bin:/bin")

    @property
    def submissions(self) -> list[str]:
        """The words of every qsub."""
        file = self.here / "submitted"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def living(self) -> list[str]:
        """The numbers of the jobs that are not over."""
        rows = [line.split() for line in (self.here / "jobs").read_text().splitlines()]
        return [row[0] for row in rows if row[2] != "C"]

    def does(self, what: str, text: str = "") -> None:
        """Let the queue misbehave from now on: `refusal`, `slow` (seconds), `twice`."""
        (self.here / what).write_text(text)

    def has(self, *jobs: str) -> None:
        """Let the queue hold these jobs only."""
        (self.here / "jobs").write_text("".join(f"{job}\n" for job in jobs))
        (self.folder / "qstat.json").unlink(missing_ok=True)
