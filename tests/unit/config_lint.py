"""What OpenSeq2Seq would only find out on paid machines: the rendered configuration, read and judged before it travels.

The facts are observed behaviour of ``run.py`` and its loader: many mistakes end a run early with exit code 0, or never.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

PYTHON = (3, 5)
"""The interpreter of NVIDIA's images up to 19.05."""
SCALING_NAMES = ("backoff", "logmax")
MOST_STEPS_AT_RISK = 5000
"""What the procedures recommend at most between checkpoints; at 1.7 s a step a crash then costs more than two hours."""
EIGHT = 8
SECTIONS = (
    *("base_params", "train_params", "eval_params", "data_layer_params"),
    *("encoder_params", "decoder_params", "loss_params", "lr_policy_params"),
)
COUNTS = ("print_loss_steps", "print_samples_steps", "save_checkpoint_steps", "eval_steps", "iter_size", "max_length")
"""What the rules compare and divide by."""

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Name:
    """A name of the file's imports, such as ``tf.float32``: a class or function that is not looked into."""

    text: str


@dataclass(frozen=True)
class Parameters:
    """What the file defines, merged as the loader merges it."""

    data_root: str | None
    base: Params
    train: Params
    evaluation: Params


def problems(text: str) -> list[str]:
    """Say what is wrong with a configuration, each with its reason; an empty list means that it may travel."""
    try:
        tree = ast.parse(text, feature_version=PYTHON)
    except SyntaxError as error:
        return [_too_new(error.lineno, error.msg)]
    # From Python 3.12 on the parser takes f-strings whatever version it is asked for.
    if formatted := next((node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)), None):
        return [_too_new(formatted.lineno, "an f-string")]
    defined = _defined(tree)
    missing = [name for name in ("base_params", "base_model") if name not in defined]
    if missing:
        return [f"{name} is missing, and the loader asks for it" for name in missing]
    wrong = [problem for name, value in defined.items() for problem in _of_kinds(name, value)]
    if wrong:
        return wrong
    base = defined["base_params"]
    train, evaluation = (_merged(base, defined.get(name, {})) for name in ("train_params", "eval_params"))
    merged = Parameters(defined.get("data_root"), base, train, evaluation)
    rules = (_of_length, _of_checkpoints, _of_evaluation, _of_precision, _of_files, _of_types, _of_shapes)
    return [problem for rule in rules for problem in rule(merged)]


def _too_new(line: int | None, what: str) -> str:
    return f"line {line} is no Python {PYTHON[0]}.{PYTHON[1]}, which the image has: {what}"


def _of_kinds(name: str, value: Any, path: str = "") -> Iterator[str]:
    """Refuse what the other rules cannot judge: a name or a call where a value has to be written out."""
    where = f"{path}{name}"
    if name == "data_root" and not isinstance(value, str):
        yield f"{where} is {_shown(value)} and has to be a text that is written out"
    if name in SECTIONS and not isinstance(value, Mapping):
        yield f"{where} is {_shown(value)} and has to be a dict that is written out"
    if name in COUNTS and value is not None and not isinstance(value, int):
        yield f"{where} is {_shown(value)} and has to be a whole number"
    if name in SECTIONS and isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _of_kinds(str(key), inner, f"{where}: ")


def _of_length(found: Parameters) -> Iterator[str]:
    base = found.base
    if base.get("use_horovod") is not True:
        yield "use_horovod has to be True: every rank would train for itself"
    if ("max_steps" in base) == ("num_epochs" in base):
        yield "exactly one of max_steps and num_epochs has to be given"
    printed, sampled = base.get("print_loss_steps"), base.get("print_samples_steps")
    if not printed:
        yield "print_loss_steps has to be set: without loss lines nobody can tell that the run goes on"
    elif sampled and sampled % printed:
        yield f"print_samples_steps {sampled} is no multiple of print_loss_steps {printed}, which the model refuses"


def _of_checkpoints(found: Parameters) -> Iterator[str]:
    every = found.base.get("save_checkpoint_steps")
    if not every:
        yield "save_checkpoint_steps has to be set: without it neither checkpoints nor best models are written"
    elif every > MOST_STEPS_AT_RISK:
        yield f"save_checkpoint_steps is {every}: a crash would lose hours; {MOST_STEPS_AT_RISK} at most"


def _of_evaluation(found: Parameters) -> Iterator[str]:
    layer = _layer(found.evaluation)
    if not found.base.get("eval_steps"):
        yield "eval_steps has to be set for train_eval"
    if layer.get("repeat") is not True:
        yield "repeat has to be True for the evaluation: else several ranks end after one step, with exit code 0"
    if layer.get("shuffle") is not False:
        yield "shuffle has to be False for the evaluation, which the data layer refuses otherwise"
    if "target_file" not in layer:
        yield "the evaluation has no target_file, so that it has nothing to compare with"


def _of_precision(found: Parameters) -> Iterator[str]:
    dtype, scaling = found.base.get("dtype"), found.base.get("loss_scaling")
    if dtype not in (Name("tf.float32"), Name("tf.float16"), "mixed"):
        yield f"dtype is {_shown(dtype)}; the graph can be built with tf.float32, tf.float16 or 'mixed' alone"
    if dtype == "mixed" and scaling is None:
        yield "loss_scaling is missing: mixed precision without it means a scale of 1, and small gradients vanish"
    if dtype != "mixed" and scaling is not None:
        yield "loss_scaling is given and has no effect without 'mixed'"
    named = isinstance(scaling, str) and scaling.lower() in SCALING_NAMES
    if scaling is not None and not named and not isinstance(scaling, float):
        yield f"loss_scaling is {_shown(scaling)}; it has to be 'Backoff', 'LogMax' or a float (512.0: 512 crashes)"
    stale = [key for key in ("loss_scale", "automatic_loss_scaling") if key in found.base]
    yield from (
        f"{key} is a key of old versions, which this one refuses; it is called loss_scaling now" for key in stale
    )


def _of_files(found: Parameters) -> Iterator[str]:
    if not str(found.base.get("logdir") or "").startswith("/"):
        yield "logdir has to be an absolute path: ranks start in their login's folder"
    if found.data_root is not None and not found.data_root.endswith("/"):
        yield f"data_root is {found.data_root!r} and has to end with a slash: file names are appended to it as they are"


def _of_types(found: Parameters) -> Iterator[str]:
    """The loader takes no int for a float and no number for a bool, and reports the first mistake alone."""
    for path, key, value in _values(found):
        is_float = key.endswith("_dropout") or key in ("alpha", "label_smoothing")
        if is_float and not isinstance(value, float):
            yield f"{path}: {key} is {_shown(value)} and has to be a float"
        is_count = key in ("hidden_size", "num_heads", "filter_size", "beam_size", "batch_size_per_gpu", "max_length")
        if is_count and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            yield f"{path}: {key} is {_shown(value)} and has to be a whole number above 0"


def _of_shapes(found: Parameters) -> Iterator[str]:
    base = found.base
    for side in ("encoder_params", "decoder_params"):
        hidden, heads = (base.get(side, {}).get(key) for key in ("hidden_size", "num_heads"))
        if isinstance(hidden, int) and isinstance(heads, int) and heads and hidden % heads:
            yield f"{side}: hidden_size {hidden} cannot be shared out among {heads} heads"
    width, expected = base.get("encoder_params", {}).get("hidden_size"), base.get("lr_policy_params", {}).get("d_model")
    if width != expected:
        yield f"lr_policy_params: d_model {_shown(expected)} is not the encoder's hidden_size {_shown(width)}"
    if base.get("iter_size", 1) > 1 and base.get("use_horovod") is not True:
        yield "iter_size works with use_horovod alone"
    for part, params in (("train", found.train), ("eval", found.evaluation)):
        layer = _layer(params)
        if layer.get("pad_lengths_to_eight") and int(layer.get("max_length", 0)) % EIGHT:
            yield f"{part}: max_length {layer.get('max_length')} is no multiple of eight, which pad_lengths_to_eight needs"


def _layer(params: Params) -> Params:
    return params.get("data_layer_params", {})


def _values(found: Parameters) -> Iterator[tuple[str, str, Any]]:
    yield from (("base_params", key, value) for key, value in found.base.items())
    for section in ("encoder_params", "decoder_params", "loss_params"):
        yield from ((section, key, value) for key, value in found.base.get(section, {}).items())
    for part, params in (("train", found.train), ("eval", found.evaluation)):
        yield from ((part, key, value) for key, value in _layer(params).items())


def _merged(base: Params, over: Params) -> Params:
    sections = [key for key in base.keys() & over if isinstance(base[key], Mapping) and isinstance(over[key], Mapping)]
    both = {key: _merged(base[key], over[key]) for key in sections}
    return {**base, **over, **both}


def _defined(tree: ast.Module) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = _value(node.value, known)
    return known


def _value(node: ast.expr, known: Params) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {_value(key, known): _value(value, known) for key, value in pairs if isinstance(key, ast.Constant)}
        case ast.List(elts=members) | ast.Tuple(elts=members):
            return [_value(member, known) for member in members]
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return str(_value(left, known)) + str(_value(right, known))
    return Name(ast.unparse(node))


def _shown(value: Any) -> str:
    return value.text if isinstance(value, Name) else repr(value)
