"""The forecast of a stack file: step time, hours and dollars of the run, and the cost of a crash."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from microcluster.accounts.registry import account_of
from microcluster.config.sections import StackFile
from microcluster.jobs.image import is_local
from microcluster.planning.checkpoint_interval import MOST_DOLLARS, MOST_MINUTES, WRITE_S, interval
from microcluster.planning.prediction import BAND, Prediction, TrainingSetup, predict
from microcluster.planning.run_cost import Bill

NO_FORECAST = "no prediction: this model on this hardware was never timed"
MUCH_MORE = 2.0
"""Times the default risk from which on a warning is printed."""


@dataclass(frozen=True)
class Forecast:
    """The expected run.

    Attributes:
        per_hour: list price of all machines by the catalog, in dollars.
        prices_as_of: the date of the catalog.
        usual: the default steps between checkpoints.
    """

    prediction: Prediction
    per_hour: Decimal
    prices_as_of: str
    max_steps: int
    checkpoint_steps: int
    usual: int

    def bill(self) -> Bill:
        """Return hours and dollars of all steps."""
        return Bill(self.max_steps * self.prediction.seconds, self.per_hour)

    def risk(self, steps: int | None = None) -> Bill:
        """Return what a crash just before a checkpoint may cost, by default with the stack's own interval; the last step always saves."""
        lost = min(steps or self.checkpoint_steps, self.max_steps)
        return Bill(lost * self.prediction.seconds, self.per_hour)

    @property
    def basis(self) -> str:
        """The price and step time behind all figures."""
        return f"${self.per_hour:.2f} an hour (list prices of {self.prices_as_of}) and {self.prediction.seconds:.2f} s per step"

    @property
    def summary(self) -> str:
        """One line; Pulumi shows at most 150 characters of an output."""
        bill, band = self.bill(), f"+-{BAND:.0%}"
        return (
            f"{self.prediction.seconds:.2f} s per step, {bill.hours:.1f} h and ${bill.dollars:,.0f} for {self.max_steps} steps "
            f"({band}; list prices of {self.prices_as_of}, {self._link})"
        )

    @property
    def stake(self) -> str:
        return f"{_risk_text(self.risk())} between two checkpoints"

    @property
    def warning(self) -> str:
        """A sentence if the interval risks much more than the default; else an empty text."""
        asked, usual = self.risk(), self.risk(self.usual)
        times = asked.seconds / usual.seconds
        if times <= MUCH_MORE:
            return ""
        return (
            f"job.checkpointSteps: {self.checkpoint_steps} puts {_risk_text(asked)} at risk between two checkpoints, {times:.0f} times "
            f"the default of {self.usual} steps ({_risk_text(usual)}); leave it out unless this is intended"
        )

    def interval_reason(self) -> str:
        """Return the origin of the checkpoint interval."""
        low, high = (seconds / (self.usual * self.prediction.seconds) for seconds in WRITE_S)
        return (
            f"computed: at most {MOST_MINUTES} min or ${MOST_DOLLARS} at {self.basis} (+-{BAND:.0%}); writing takes "
            f"{low:.0%} to {high:.0%} of the time"
        )

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the forecast as ``(path, value, origin)``."""
        bill = self.bill()
        return [
            ("plan.secondsPerStep", f"{self.prediction.seconds:.2f}", f"computed, +-{BAND:.0%}: {self._link}"),
            ("plan.hours", f"{bill.hours:.1f}", "computed: maxSteps times secondsPerStep, without preparation"),
            ("plan.dollars", f"{bill.dollars:.0f}", f"computed: hours at {self.basis}"),
            ("plan.atRisk", _risk_text(self.risk()), f"computed: checkpointSteps at {self.basis}"),
        ]

    @property
    def _link(self) -> str:
        if not self.prediction.wire_bytes:
            return "one machine, no network between ranks"
        return f"ports that carry {self.prediction.link_mbps / 1000:g} Gb/s"


def with_forecast(
    file: StackFile, written: Mapping[str, Any], reasons: dict[str, str]
) -> tuple[StackFile, Forecast | None, dict[str, str]]:
    """Return the forecast of a valid stack file, or None for what was never timed.

    The money at risk decides the checkpoint interval, unless the stack file sets it.
    """
    cluster, job = file.cluster, file.job
    hardware, workload, per_hour = cluster.hardware, job.workload(), cluster.rent_per_hour
    if workload is None or per_hour is None or file.container is None or is_local(file.container.image):
        return file, None, reasons
    setup = TrainingSetup(
        gpu=hardware.gpu,
        gpus=hardware.gpus,
        nodes=cluster.nodes,
        port_speed_mbps=cluster.port_speed_mbps,
        model=workload.name,
        precision=workload.precision,
        units=workload.units,
        gradient_bytes=workload.gradient_bytes,
    )
    prediction = predict(setup)
    if prediction is None:
        return file, None, reasons
    usual, as_of = interval(prediction.seconds, per_hour), account_of(cluster.account).prices_as_of
    is_set = "checkpointSteps" in written["job"]
    found = Forecast(prediction, per_hour, as_of, job.max_steps, job.checkpoint_steps if is_set else usual, usual)
    if is_set:
        return file, found, reasons
    job = job.model_copy(update={"checkpoint_steps": usual})
    return file.model_copy(update={"job": job}), found, reasons | {"job.checkpointSteps": found.interval_reason()}


def _risk_text(risk: Bill) -> str:
    minutes = risk.seconds / 60
    time = f"{minutes:.1f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
    return f"{time} and ${risk.dollars:.2f}"
