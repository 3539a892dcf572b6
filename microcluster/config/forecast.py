"""The forecast of a stack file: step time, hours and dollars of the run, and the cost of a crash."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from microcluster.accounts.registry import account_of
from microcluster.config.sections import StackFile
from microcluster.jobs.image import is_local
from microcluster.planning.checkpoint_interval import MOST_DOLLARS, MOST_MINUTES, WRITE_S, interval
from microcluster.planning.prediction import ALONE, BAND, Prediction, TrainingSetup, predict
from microcluster.planning.run_cost import Bill, Span, exactly, rental_hours, started_hours_cost

NO_FORECAST = "no prediction: this model on this hardware was never timed"
MUCH_MORE = 2.0
"""Times the default risk from which on a warning is printed."""


@dataclass(frozen=True)
class Forecast:
    """The expected run.

    Attributes:
        per_hour: price of all machines by the catalog, in dollars.
        prices: what the catalog's prices are, with their date.
        preparation: hours from the order to the first step, data included.
        usual: the default steps between checkpoints.
    """

    setup: TrainingSetup
    prediction: Prediction
    per_hour: Decimal
    prices: str
    preparation: Span
    max_steps: int
    checkpoint_steps: int
    usual: int

    def hours(self, step_s: Span | None = None) -> Span:
        """Return the hours from the order to the end, by default over all links."""
        return rental_hours(exactly(self.max_steps), step_s or self.prediction.span, self.preparation)

    def dollars(self, step_s: Span | None = None) -> Span:
        """Return the price of the started hours, by default over all links."""
        return started_hours_cost(self.hours(step_s), self.per_hour)

    def risk(self, steps: int | None = None) -> Bill:
        """Return the loss of a crash just before a checkpoint, by default with the stack's own interval; the last step always saves."""
        lost = min(steps or self.checkpoint_steps, self.max_steps)
        return Bill(lost * self.prediction.seconds, self.per_hour)

    @property
    def basis(self) -> str:
        """The price behind all figures."""
        return f"${self.per_hour:.2f} an hour ({self.prices})"

    @property
    def summary(self) -> str:
        """One line; Pulumi shows at most 150 characters of an output."""
        where = "one machine" if ALONE in self.prediction.links else "depends on the link"
        return (
            f"{self._takes(self.prediction.span)} for {self.max_steps} steps, with preparation ({where}; {self.prices})"
        )

    @property
    def stake(self) -> str:
        return f"{_risk_text(self.risk())} between two checkpoints at the usual pace"

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
        step_s = self.prediction.interval_s
        low, high = (seconds / (self.usual * step_s) for seconds in WRITE_S)
        return (
            f"computed: at most {MOST_MINUTES} min or ${MOST_DOLLARS} at {self.basis} and {step_s:.2f} s per step, a tenth more "
            f"allowed; writing takes {low:.0%} to {high:.0%} of the time"
        )

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the forecast as ``(path, value, origin)``."""
        span, preparation = self.prediction.span, self.preparation.text("{:.3g}")
        source = (
            f"published, +-{BAND:.0%} assumed" if ALONE in self.prediction.links else "recorded runs, over all links"
        )
        table = [
            ("plan.secondsPerStep", span.text("{:.3g}"), source),
            (
                "plan.hours",
                self.hours().text("{:.1f}"),
                f"computed: maxSteps times secondsPerStep, and {preparation} h before",
            ),
            ("plan.dollars", self.dollars().text("{:.0f}"), f"computed: started hours at {self.basis}"),
            ("plan.atRisk", _risk_text(self.risk()), f"computed: checkpointSteps at {self.basis} and the usual pace"),
        ]
        for name, each in self.prediction.links.items():
            if name != ALONE:
                table.append((f"plan.on {name}", self._takes(each), "recorded runs on such a link"))
        return table

    def _takes(self, step_s: Span) -> str:
        hours, dollars = self.hours(step_s).text("{:,.1f}"), self.dollars(step_s).text("${:,.0f}")
        return f"{step_s.text('{:.3g}')} s per step, {hours} h, {dollars}"


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
    usual, account = interval(prediction.interval_s, per_hour), account_of(cluster.account)
    is_set = "checkpointSteps" in written["job"]
    forecast = Forecast(
        setup=setup,
        prediction=prediction,
        per_hour=per_hour,
        prices=account.price_source,
        preparation=Span(*account.hours_before(workload)),
        max_steps=job.max_steps,
        checkpoint_steps=job.checkpoint_steps if is_set else usual,
        usual=usual,
    )
    if is_set:
        return file, forecast, reasons
    job = job.model_copy(update={"checkpoint_steps": usual})
    return file.model_copy(update={"job": job}), forecast, reasons | {"job.checkpointSteps": forecast.interval_reason()}


def _risk_text(risk: Bill) -> str:
    minutes = risk.seconds / 60
    time = f"{minutes:.1f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
    return f"{time} and ${risk.dollars:.2f}"
