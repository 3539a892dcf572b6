"""The verbs of Fabric: `fab --list` shows them, `fab --help VERB` documents one; `. ./env.sh` first."""

from microcluster.setup import secret_env

secret_env.withhold()  # Before anything else is imported or started: no child of fab needs the account's variables.

from fabric.main import program  # noqa: E402
from invoke import Collection  # noqa: E402

from microcluster.verbs import (  # noqa: E402
    explain,
    fetch,
    job,
    logs,
    receipt,
    recover,
    report,
    step,
    sweep,
    tensorboard,
    translate,
    trust,
    watch,
)

# `fab ssh NODE -- WORDS`: Fabric itself wants to run what follows the dashes, and on hosts of its own option -H.
if hasattr(program, "core"):
    program.core.remainder = ""

ns = Collection(
    job.status,
    watch.watch,
    logs.logs,
    job.stop,
    job.resume,
    report.report,
    tensorboard.tensorboard,
    fetch.fetch,
    translate.translate,
    receipt.receipt,
    recover.recover,
    sweep.sweep,
    explain.explain,
    job.ssh,
    trust.trust,
    step=Collection.from_module(step),
)
