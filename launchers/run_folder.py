"""What stands in a run's folder on the launcher before it starts: every file and every argv, from the payload alone."""

from __future__ import annotations

import json
from dataclasses import dataclass

from launchers import config_rules, openseq2seq
from launchers.horovod import RSH_AGENT, RUN_VARIABLE, World, environment, mpirun
from launchers.payload import Payload, PayloadError
from launchers.rendering import render


@dataclass(frozen=True)
class RunFolder:
    """One run on its launcher; ``image_digest`` is only written down."""

    payload: Payload
    image_digest: str = ""

    @property
    def path(self) -> str:
        """The run's folder; its name is the run id."""
        return f"{self.payload.mount_point}/runs/{self.payload.run}"

    @property
    def world(self) -> World:
        """Every slot of every host."""
        addresses = tuple(host.private_address for host in self.payload.hosts)
        return World(addresses, self.payload.slots, self.payload.interface)

    def texts(self) -> dict[str, str]:
        """Return the rendered files by name; job.json stands last, because with it the run exists."""
        job = self.payload.job
        assert job
        data = openseq2seq.DATASETS[job.dataset]
        folder = openseq2seq.data_folder(job, self.payload.mount_point)
        return {
            "config.py": self._config(),
            "prepare.sh": render(data.script, folder=folder, data=data),
            "place.sh": render("place.sh.j2", data=folder, run=self.path, ssh=RSH_AGENT),
            "job.json": json.dumps(self.job(), indent=1, sort_keys=True) + "\n",
        }

    def _config(self) -> str:
        assert self.payload.job
        text = openseq2seq.render_config(self.payload.job, self.payload.mount_point, f"{self.path}/logdir")
        wrong = config_rules.problems(text)
        if wrong:
            raise PayloadError(
                f"rendering the configuration of run {self.payload.run}: {'; '.join(wrong)}. Nothing was started; correct "
                "job in the stack file or templates/transformer_base.py.j2."
            )
        return text

    def job(self) -> dict[str, object]:
        """Return what the supervisor reads: words, never lines of shell."""
        payload, config = self.payload, f"{self.path}/config.py"
        assert payload.job and payload.container
        every_rank = ("python", f"{self.path}/preflight.py", payload.interface, config)
        return {
            "run": payload.run,
            "max_steps": payload.job.max_steps,
            "container": payload.container.name,
            "image": payload.container.image,
            "image_digest": self.image_digest,
            "environment": {**environment(self.world), RUN_VARIABLE: payload.run},
            "program_folder": openseq2seq.PROGRAM_FOLDER,
            "addresses": list(self.world.addresses),
            "slots": payload.slots,
            "prepare": ["sh", f"{self.path}/prepare.sh"],
            "place": ["sh", f"{self.path}/place.sh"],
            "preflight": list(mpirun(self.world, every_rank)),
            "train": list(mpirun(self.world, openseq2seq.program(config))),
            "resume": list(mpirun(self.world, openseq2seq.program(config, resume=True))),
        }
