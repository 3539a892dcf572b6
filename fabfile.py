"""The verbs of Fabric: `fab --list` shows them, `fab --help VERB` documents one; `. ./env.sh` first."""

from fabric.main import program
from invoke import Collection

from verbs import explain, job, money, step, trust, watch

# `fab ssh NODE -- WORDS`: Fabric itself wants to run what follows the dashes, and on hosts of its own option -H.
if hasattr(program, "core"):
    program.core.remainder = ""

ns = Collection(
    job.status,
    watch.watch,
    job.logs,
    job.stop,
    job.resume,
    job.report,
    money.receipt,
    explain.explain,
    job.ssh,
    trust.trust,
    step=Collection.from_module(step),
)
