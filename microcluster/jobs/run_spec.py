"""What stands in a run's folder on the launcher before it starts: every file and every argv, from the payload alone."""

from __future__ import annotations

import json
from dataclasses import dataclass

from agent import program
from microcluster.jobs import config_lint, image, openseq2seq, staging_plan
from microcluster.jobs.cluster_facts import ClusterFacts, ClusterFactsError
from microcluster.jobs.mpirun import RSH_AGENT, RUN_VARIABLE, World, environment, mpirun
from microcluster.jobs.rendering import render

WATCH_EVERY_S, SAMPLE_EVERY_S = 5, 20
"""How often the supervisor looks for checkpoints and alarms, and how often it asks every machine how it is."""

STAGING_LABEL = "microcluster.staging"
UNSTAGE = f"docker ps -aq --filter label={STAGING_LABEL} | xargs -r docker rm -f"
"""A launcher carries one run, so whatever container of this label is there was left behind."""
FLOAT_BYTES = 4
CHECKPOINT_BYTES, CHECKPOINTS_KEPT, SPARE_BYTES = 14, 12, 10**9
"""A checkpoint in mixed precision takes 14 bytes a parameter; five regular and five best ones are kept, and two are written."""


@dataclass(frozen=True)
class RunFolder:
    """One run on its launcher; ``image_digest`` is only written down, ``image_ids`` of all hosts are compared."""

    payload: ClusterFacts
    image_digest: str = ""
    image_ids: tuple[str, ...] = ()

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
        folder = openseq2seq.data_folder(job, self.payload.mount_point)
        plan = staging_plan.plan(job, self.payload.mount_point)
        return {
            "config.py": self._config(),
            "staging.json": json.dumps(plan, indent=1, sort_keys=True) + "\n",
            "data.sh": render("data.sh.j2", data=folder, id=plan["id"], ssh=RSH_AGENT),
            "place.sh": render("place.sh.j2", run=self.path, ssh=RSH_AGENT),
            "job.json": json.dumps(self.job(), indent=1, sort_keys=True) + "\n",
        }

    def _config(self) -> str:
        assert self.payload.job
        text = openseq2seq.render_config(self.payload.job, self.payload.mount_point, f"{self.path}/logdir")
        wrong = config_lint.problems(text)
        if wrong:
            raise ClusterFactsError(
                f"rendering the configuration of run {self.payload.run}: {'; '.join(wrong)}. Nothing was started; correct "
                "job in the stack file or templates/transformer_base.py.j2."
            )
        return text

    def _stage(self) -> tuple[str, ...]:
        """Return the argv that makes the data in a container of their own, which sees no GPU and ends with the run."""
        payload = self.payload
        assert payload.container
        return (
            *("docker", "run", "--rm", "--name", f"microcluster-staging-{payload.run}"),
            *("--label", f"{STAGING_LABEL}={payload.run}", "--net=host", "--runtime=runc"),
            *("-e", f"{RUN_VARIABLE}={payload.run}", "-e", "LC_ALL=C.UTF-8"),
            *("-v", f"{payload.mount_point}:{payload.mount_point}", "-w", "/", "--entrypoint", "python"),
            *(image.tag(payload.container), *program(self.path, "staging", f"{self.path}/staging.json")[1:]),
        )

    def job(self) -> dict[str, object]:
        """Return what the supervisor reads: words, never lines of shell."""
        payload, config = self.payload, f"{self.path}/config.py"
        assert payload.job and payload.container
        data = openseq2seq.data_folder(payload.job, payload.mount_point)
        parameters, port = openseq2seq.parameters(payload.job), payload.container.ssh_port - 1
        model_bytes = FLOAT_BYTES * parameters
        every_rank = program(self.path, "preflight", payload.interface, config, str(model_bytes))
        copies = program(self.path, "replica_store", self.path)
        ended = f"{self.path}/ranks_ended.jsonl"
        rank = program(self.path, "rank_wrapper", ended)
        return {
            "run": payload.run,
            "max_steps": payload.job.max_steps,
            "eval_steps": payload.job.eval_steps,
            "container": payload.container.name,
            "image": payload.container.image,
            "image_digest": self.image_digest,
            "environment": {**environment(self.world), RUN_VARIABLE: payload.run},
            "program_folder": image.program_folder(payload.container),
            "trainer": image.framework(payload.container),
            "addresses": list(self.world.addresses),
            "names": [host.name for host in payload.hosts],
            "mixed": payload.job.precision == "mixed",
            "stall_s": payload.job.stall_s,
            **self._expected(),
            "watch_every_s": WATCH_EVERY_S,
            "sample_every_s": SAMPLE_EVERY_S,
            "slots": payload.slots,
            "data": ["sh", f"{self.path}/data.sh"],
            "stage": list(self._stage()),
            "unstage": ["sh", "-c", UNSTAGE],
            "place": ["sh", f"{self.path}/place.sh"],
            "spread": program(self.path, "distribute_data", data, json.dumps(RSH_AGENT.split())),
            "ssh": RSH_AGENT.split(),
            "facts": program(self.path, "node_facts", payload.interface, self.path, data, str(port)),
            "bandwidth": program(self.path, "bandwidth"),
            "preflight_skipped": payload.job.preflight.removeprefix("run").removeprefix("skip: "),
            "interface": payload.interface,
            "gpu": payload.gpu,
            "port_speed_mbps": payload.port_speed_mbps,
            "probe_port": port,
            "images": list(self.image_ids) or [self.image_digest] * len(payload.hosts),
            "model_bytes": model_bytes,
            "disk_bytes": SPARE_BYTES + CHECKPOINTS_KEPT * CHECKPOINT_BYTES * parameters,
            "end": program(self.path, "kill_run", f"{payload.mount_point}/runs", "only", payload.run),
            "read": program(self.path, "verify_tensors"),
            "copy": [*copies, "copy"],
            "copied": [*copies, "copied"],
            "bring": [*copies, "bring"],
            "preflight": list(mpirun(self.world, every_rank)),
            "ended": ["cat", ended],
            "train": list(mpirun(self.world, (*rank, *openseq2seq.program(config)))),
            "resume": list(mpirun(self.world, (*rank, *openseq2seq.program(config, resume=True)))),
        }

    def _expected(self) -> dict[str, object]:
        """Return what planning expects of a step, None where it knows nothing; the launcher knows its network better."""
        expected = self.payload.prediction
        return {
            "predicted_s": expected.seconds if expected else None,
            "compute_s": expected.compute_s if expected else None,
            "wire_bytes": expected.wire_bytes if expected else 0,
            "per_hour": self.payload.per_hour,
            "print_steps": openseq2seq.SIZES[self.payload.job.model].print_steps if self.payload.job else 0,
        }
