"""The verbs of Fabric: `fab --list` lists them, `fab --help VERB` explains one; run `. ./env.sh` first."""

from microcluster.setup import secret_env

secret_env.withhold()  # First of all: no child process of fab may inherit the account's variables.

from fabric.main import program  # noqa: E402
from invoke import Collection  # noqa: E402

from microcluster.commands import (  # noqa: E402
    command,
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

# `fab ssh NODE -- COMMAND`: Fabric itself would run what follows the dashes, on the hosts of its option -H.
if hasattr(program, "core"):
    program.core.remainder = ""
    program.core.unparsed[:] = command.each_with_its_option(program.core.unparsed, "--runs")

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
