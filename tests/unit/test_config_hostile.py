"""Stack files that are malformed or malicious: each is refused with the key's path, in one sentence, and nothing of it runs."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from test_config import V100

from microcluster.config import stack as config
from microcluster.core.home import Home

ROOT = Path(__file__).parents[2]
GOOD = {**V100, "microcluster:container": {"image": "registry.example.com/team/openseq2seq:1"}}
WORDS = (
    *("cluster/datacenter", "cluster/flavor", "cluster/os", "cluster/image", "cluster/adminCidrs/0"),
    *("container/image", "container/name", "container/registryKeyFile"),
    *("job/kind", "job/model", "job/dataset", "job/precision", "job/data", "softlayer:configFile"),
)
NUMBERS = (
    *("cluster/nodes", "cluster/portSpeedMbps", "cluster/dataDiskGb", "cluster/router", "cluster/privateVlan"),
    *("container/sshPort", "job/maxSteps", "job/batchPerGpu", "job/evalSteps", "job/checkpointSteps"),
)
CANARY = Path("/tmp/microcluster-injected")
INJECTIONS = (
    *(f"$(touch {CANARY})", f"`touch {CANARY}`", f"x; touch {CANARY}", f"x | touch {CANARY}", f"x && touch {CANARY}"),
    *(
        f"x\ntouch {CANARY}",
        f"x\r\nHost: evil\r\n\r\ntouch {CANARY}",
        f"' ; touch {CANARY} ; '",
        f'" ; touch {CANARY} ; "',
    ),
    f"{{{{ cycler.__init__.__globals__.os.system('touch {CANARY}') }}}}",
    *("{% include '/etc/passwd' %}", "${IFS}x", "%s%n%x", "../../../../etc/passwd", "--privileged", "-oProxyCommand=x"),
    *("lon04\x00", "\x1b[2Jlon04", "lon\u202e04", "\u0440\u0430\u0443", "x" * 20000, "", " ", "\ufeff"),
)
NO_NUMBERS = ("-1", "0", "1.5", ".nan", ".inf", "'2'", "[2]", "{a: 2}", "true", "2_0x", "1e3", "9" * 40, "'0x2'")
NO_WORDS = ("7", "1.5", "true", "[a]", "{a: b}", "2026-11-21", ".nan")
OPEN_TO_ALL = (
    *("0.0.0.0/0", "0/0", "0.0.0.0/00", "0.0.0.0/0.0.0.0", "::/0", "::0/0", "0:0:0:0:0:0:0:0/0", "::ffff:0.0.0.0/96"),
    *("000.000.000.000/0", "0x0.0x0.0x0.0x0/0", "0.0.0.0/ 0", " 0.0.0.0/0", "0.0.0.0/0\n", "１.0.0.0/8", "1.2.3.4/٠"),
    *("0.0.0.0/1", "128.0.0.0/1", "64.0.0.0/2", "8.0.0.0/7", "0.0.0.0/32", "0.0.0.0", "127.0.0.1/32", "224.0.0.1/32"),
    *(
        "10.0.0.1/8",
        "1.2.3.4/33",
        "1.2.3.4/-1",
        "1.2.3",
        "1.2.3.4/32,0.0.0.0/0",
        "1.2.3.4/32 0.0.0.0/0",
        "any",
        "*",
        "0",
    ),
)


def file_with(tmp_path: Path, path: str, raw: str) -> Path:
    """Write a stack file whose value at ``path`` is the YAML text ``raw``."""
    sections = json.loads(json.dumps(GOOD))
    section, _, key = path.removesuffix("/0").partition("/")
    marker = "the-value-of-the-test"
    if key:
        sections[f"microcluster:{section}"][key] = [marker] if path.endswith("/0") else marker
    else:
        sections[section] = marker
    if path == "cluster/image":
        sections["microcluster:cluster"].pop("os", None)
    text = yaml.safe_dump({"config": sections}).replace(marker, raw)
    return written(tmp_path, text.encode())


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_bytes(content)
    return path


def refusal(path: Path) -> str:
    """Return with which words a stack file is refused, as the verbs and make would; nothing may come of it but that."""
    with pytest.raises(config.ConfigError) as refused:
        config.parse("dev", config.read_values(path), ordering=True)
    said = str(refused.value)
    assert said.replace("\n", "").isprintable(), "what is on the screen must not steer the terminal"
    assert len(said) < 5000 and "nothing was ordered" in said
    assert not CANARY.exists()
    return said


@pytest.mark.parametrize("path", WORDS)
def test_no_word_takes_another_type_or_characters_of_shell_template_or_terminal(tmp_path, path) -> None:
    for raw in (*map(json.dumps, INJECTIONS), *NO_WORDS):
        assert path in refusal(file_with(tmp_path, path, raw)), raw


@pytest.mark.parametrize("path", NUMBERS)
def test_no_number_takes_anything_but_a_number_in_its_range(tmp_path, path) -> None:
    for raw in NO_NUMBERS:
        assert f"{path}: " in refusal(file_with(tmp_path, path, raw)), raw


def test_port_22_is_not_opened_to_everybody_however_that_is_spelt(tmp_path) -> None:
    for cidr in OPEN_TO_ALL:
        assert "cluster/adminCidrs" in refusal(file_with(tmp_path, "cluster/adminCidrs/0", json.dumps(cidr))), cidr


@pytest.mark.parametrize("cidrs", [[f"{n}.0.0.0/9" for n in range(1, 9)], ["11.0.0.0/8", "12.0.0.1/32"]])
def test_nor_by_many_networks_that_are_narrow_each(tmp_path, cidrs) -> None:
    file = file_with(tmp_path, "cluster/adminCidrs", json.dumps(cidrs))
    assert "cluster/adminCidrs: together they open" in refusal(file)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("!!python/object/apply:os.system ['touch /tmp/microcluster-injected']", "cluster/nodes: the tag"),
        ("!!binary aGk=", "cluster/nodes: the tag"),
        ("&a 2", "cluster/nodes: anchors and aliases"),
        ("{<<: {a: 1}}", "cluster/nodes: merging with <<"),
        ("{a: 1, a: 2}", "cluster/nodes/a: written twice"),
        ("{[a]: 1}", "cluster/nodes: a key is a list"),
        ("[" * 5000 + "]" * 5000, "nested more than 8 deep"),
        ("'" + "y" * 70000 + "'", "a stack file has fewer"),
        ("2026-99-99", "cluster/nodes: '2026-99-99'"),
        ("@x", "cannot start any token"),
        ("\tx: y", "line "),
    ],
    ids=lambda text: text[:24],
)  # fmt: skip
def test_yaml_is_taken_without_its_traps(tmp_path, raw, expected) -> None:
    assert expected in refusal(file_with(tmp_path, "cluster/nodes", raw))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"config:\n  microcluster:job: {}\n  microcluster:job: {}\n", "config/microcluster:job: written twice"),
        (b"config: {}\nconfig: {}\n", "config: written twice"),
        (b"environment: {values: {pulumiConfig: {'microcluster:job': {}}}}\n", "environment: keys of microcluster and"),
        (b"config: [1, 2]\n", "config: should be a mapping"),
        (b"", "cluster: is required"),
        (b"confg: {}\n", "confg: unknown key; did you mean 'config'?"),
        (b"config:\n  cluster: {}\n", "cluster: unknown key; did you mean 'microcluster:cluster'?"),
        (b"config:\n  other:cluster: {}\n", "other:cluster: unknown key"),
        (b"config:\n  1: 2\n", "1: unknown key"),
        (b"config:\n  microcluster:cluster: []\n", "cluster: []"),
        (b"config:\n  microcluster:cluster: {secure: v1:abc}\n", "cluster/secure: unknown key"),
        (b'config:\n  microcluster:cluster: {"\\e[2Jx": 1}\n', "cluster/\\x1b[2Jx: unknown key"),
        (b"config:\n  ? [a]\n  : 1\n", "config: a key is a list"),
        (b"config: {\n", "line 2"),
        (b"config: {}\n---\nconfig: {}\n", "but found another document"),
        (b"\xff\xfe\x00", "is no UTF-8"),
        (b"config: \x00\n", "special characters are not allowed"),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_a_file_that_is_no_stack_file_is_refused_and_says_where(tmp_path, content, expected) -> None:
    assert expected in refusal(written(tmp_path, content))


def test_a_bomb_of_aliases_is_refused_before_it_grows(tmp_path) -> None:
    good = file_with(tmp_path, "cluster/nodes", "3")  # The file that all of these begin from is a good one.
    assert config.parse("dev", config.read_values(good), ordering=True).cluster.nodes == 3
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]
    assert "a0: anchors and aliases" in refusal(written(tmp_path, "\n".join(lines).encode()))


@pytest.mark.parametrize("key", ["apiKey", "api_key", "key", "password", "username", "token", "secret"])
def test_a_key_in_a_stack_file_is_refused_with_advice_and_unrepeated(tmp_path, key) -> None:
    said = refusal(file_with(tmp_path, f"softlayer:{key}", "c0ffee-the-key-itself"))
    assert f"softlayer:{key}: does not belong in a stack file" in said and "0600" in said
    assert "c0ffee" not in said


@pytest.mark.parametrize("path", ["container/registryKeyFile", "softlayer:configFile"])
def test_a_key_in_the_place_of_its_file_is_not_repeated(tmp_path, path) -> None:
    assert "nvapi" not in refusal(file_with(tmp_path, path, "nvapi-c0ffee"))


@pytest.mark.parametrize("number", ["0xfff", "0b11", "0600", "1:30", "190:20:30.15", "9" * 19, "+0x1", "-1:0", "0_1"])
def test_a_number_that_people_would_read_as_another_one_is_a_text(tmp_path, number) -> None:
    path = file_with(tmp_path, "job/maxSteps", number)
    assert config.read_values(path)["microcluster:job"]["maxSteps"] == number
    assert "job/maxSteps" in refusal(path)


@pytest.mark.parametrize("number", ["300", "50_000", "'0600'"])
def test_plain_digits_and_texts_are_read_as_ever(tmp_path, number) -> None:
    values = config.read_values(file_with(tmp_path, "job/maxSteps", number))
    assert values["microcluster:job"]["maxSteps"] in (300, 50_000, "0600")


@pytest.mark.parametrize("path", ["~/.ssh/id_ed25519", "/root/.ssh/keys/id_rsa", "$HOME/.ssh/config"])
def test_a_key_of_ssh_is_no_registry_key(tmp_path, path) -> None:
    assert "container/registryKeyFile: names a file of ssh" in refusal(
        file_with(tmp_path, "container/registryKeyFile", path)
    )


@pytest.mark.parametrize("variable", ["$SL_API_KEY", "${NGC_API_KEY}", "$HOME/$SL_API_KEY", "/tmp/$SL_API_KEY"])
def test_no_variable_but_the_home_is_filled_into_a_path(tmp_path, monkeypatch, variable) -> None:
    monkeypatch.setenv("SL_API_KEY", "c0ffee")
    assert "c0ffee" not in refusal(file_with(tmp_path, "softlayer:configFile", variable))
    assert "c0ffee" not in str(Home.of().expand(variable))


@pytest.mark.parametrize("scale", ["0", "-1", ".nan", ".inf", "'x'", "true", "[1]", "1e9"])
def test_a_unit_of_time_that_is_none_is_refused(tmp_path, scale) -> None:
    assert "softlayer:timeScale: " in refusal(file_with(tmp_path, "softlayer:timeScale", scale))


@pytest.mark.parametrize(
    "name",
    [*("../x", "..", "a/b", "", "local\n", "$(x)", "x" * 41, "\x1b[2J"), *("a_b", "a--b", "a-", "-a", "a.b")],
)
def test_a_stack_whose_name_no_machine_could_bear_does_not_exist(name) -> None:
    with pytest.raises(config.ConfigError, match="there can be none: its name is part of the machines") as refused:
        config.read_file(name)
    assert str(refused.value).isprintable()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from([path.removesuffix("/0") for path in (*WORDS, *NUMBERS)] + ["cluster", "container", "job"])


@settings(max_examples=300)
@given(KEYS, PLAIN)
def test_whatever_stands_there_it_is_taken_or_refused_in_a_sentence(path, value) -> None:
    values = json.loads(json.dumps(GOOD))
    section, _, key = path.partition("/")
    if key:
        values[f"microcluster:{section}"][key] = value
    else:
        values[section if ":" in section else f"microcluster:{section}"] = value
    try:
        config.parse("dev", values, ordering=True)
    except config.ConfigError as refused:
        assert "nothing was ordered" in str(refused)


STACKS = {path.stem.partition(".")[2]: config.read_values(path) for path in sorted((ROOT / "stacks").glob("*.yaml"))}
ONE_OF_EACH = {
    (values["microcluster:cluster"].get("account"), values["microcluster:job"]["kind"]): name
    for name, values in STACKS.items()
}


@pytest.mark.parametrize("stack", ONE_OF_EACH.values())
def test_a_wrong_shape_of_any_key_is_a_sentence(stack) -> None:
    values = STACKS[stack]
    known = config.parse(stack, values, ordering=False)
    sections = {f"microcluster:{name}": getattr(known, name) for name in ("cluster", "container", "job")}
    keys = {(name, field.alias) for name, one in sections.items() if one for field in type(one).model_fields.values()}
    for name, key in sorted([*keys, *((name, None) for name in values)], key=str):
        for odd in ([], ["ny2"], [["a"]], {}, {"a": 1}, 7, -1, 1.5, float("nan"), True, None, "", "\x00", 10**30):
            section = {**values.get(name, {}), key: odd} if key else odd
            try:
                config.parse(stack, {**values, name: section}, ordering=True)
            except config.ConfigError as refused:
                assert "nothing was ordered" in str(refused)
