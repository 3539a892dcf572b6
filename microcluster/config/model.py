"""The sections of a stack file and the allowed values."""

from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from microcluster.accounts.account import section_of as cluster_section_of
from microcluster.accounts.registry import account_of, name_in
from microcluster.config.validators import image_reference, key_file
from microcluster.jobs.kind import section_of as job_section_of


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class Container(_Section):
    """The container in which the job runs on every node."""

    image: Annotated[StrictStr, AfterValidator(image_reference)]
    name: Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_-]{0,30}$")] = "training"
    ssh_port: Annotated[StrictInt, Field(ge=1024, le=65535)] = 4444
    registry_key_file: Annotated[StrictStr, AfterValidator(key_file)] | None = None


ClusterSection = TypeVar("ClusterSection", bound=BaseModel)
ContainerSection = TypeVar("ContainerSection")
JobSection = TypeVar("JobSection", bound=BaseModel)


class StackFile(_Section, Generic[ClusterSection, ContainerSection, JobSection]):
    """The sections of a stack file; the account defines ``cluster``, and the job's kind ``job``.

    ``container`` is None where the account's machines run none.
    """

    cluster: ClusterSection
    container: ContainerSection
    job: JobSection


def stack_file(cluster: object, job: object) -> type[StackFile]:
    """Return the model of a stack file with these sections."""
    named = name_in(cluster)
    container = None if named and account_of(named).runtime == "host" else Container
    return StackFile[cluster_section_of(cluster), container, job_section_of(job)]


def keys_at(file: type[StackFile], location: list[str]) -> list[str]:
    """Return the known keys below a path of the stack file."""
    section: type[BaseModel] = file
    for part in location:
        field = section.model_fields.get(part)
        section = field.annotation if field and isinstance(field.annotation, type) else section
    return [field.alias or name for name, field in section.model_fields.items()]
