"""A remote step as a Pulumi resource: one Fabric verb, run again when the facts that it reads change."""

import pulumi
from pulumi_command import local

# `exec`: Pulumi stops only its direct child, which must be the verb itself and not a shell around it.
_FAB = "exec .venv/bin/fab"


def step(
    name: str,
    verb: str,
    facts: pulumi.Input[str],
    triggers: list[pulumi.Input[str]],
    opts: pulumi.ResourceOptions,
    *,
    undo: str | None = None,
) -> local.Command:
    """Declare that the step ``verb`` has run with ``facts`` on standard input; a change of ``triggers`` replaces it.

    Args:
        undo: the step that runs on removal; it must not fail for an unreachable machine.
    """
    run = f"{_FAB} step.{verb}"
    return local.Command(
        name,
        local.CommandArgs(
            create=run, update=run, delete=f"{_FAB} step.{undo}" if undo else None, stdin=facts, triggers=triggers
        ),
        opts=opts,
    )
