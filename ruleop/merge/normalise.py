"""What the API server makes of every object before it stores it, done beforehand, so that wanted and live can be compared at all.

Only what holds for a whole kind belongs here. What a server makes of single values is learned from its answers (`ruleop.merge.learned`).
"""

from __future__ import annotations

import base64

import orjson

from ruleop.errors import RuleopError
from ruleop.kinds import JSON, Kind, Object
from ruleop.merge.equality import canonical
from ruleop.merge.path import Path
from ruleop.schema.table import builtin_resource

_SECRET = Kind("", "v1", "Secret")
_CLUSTER_ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole")


class UnwritableError(RuleopError):
    """No request can say it."""


def normalise_wanted(wanted: Object, kind: Kind) -> Object:
    """`wanted` as the server would store it: without nulls and without the `rules` of an aggregated ClusterRole, a Secret's `stringData` as
    `data`, whole numbers of a custom resource as integers. For a built-in kind it is `wanted` itself if it is so already. Raises
    UnwritableError."""
    if b"null" in as_json(wanted):
        wanted = _cleaned(wanted)
    if builtin_resource(kind.versionless) is None:  # in a type of Kubernetes' own, a float may be one that the server refuses
        wanted = with_integers(wanted)
    if kind == _SECRET and "stringData" in wanted:
        return _with_plain_data(wanted)
    if kind == _CLUSTER_ROLE and "aggregationRule" in wanted and "rules" in wanted:  # a controller of the server's collects them
        return {name: value for name, value in wanted.items() if name != "rules"}
    return wanted


def as_json(value: JSON) -> bytes:
    """Raises UnwritableError."""
    try:
        return orjson.dumps(value)
    except TypeError as error:  # half of a surrogate pair; or a value of the cluster that is nested deeper than orjson goes
        raise UnwritableError(f"cannot be written as JSON ({error})") from None


def normalise_ignored(path: Path, wanted: Object, kind: Kind) -> tuple[Path, ...]:
    """The same for a path of `apply.ignore`: a place in a Secret's `stringData` is one in its `data`, and all of it are the names in it."""
    first, *rest = path.segments
    if kind != _SECRET or first != "stringData":
        return (path,)
    plain = wanted.get("stringData")
    below = [rest] if rest else [[name] for name in plain] if type(plain) is dict else []
    return tuple(Path(("data", *segments), path.text) for segments in below)


def without_nulls(value: JSON) -> JSON:
    """Members that are null mean absent, at any depth. A null that is an item of a list is a value and stays."""
    if b"null" not in canonical(value):  # a fast no; a text with that word in it merely costs the walk
        return value
    return _cleaned(value)


def with_integers(value: JSON) -> JSON:
    """Floats without a fraction as integers, at any depth, as far as the server's integers reach. Go writes the float 50 as `50`, and that
    is an integer to whoever reads it."""
    kind = type(value)
    if kind is dict:
        return {name: with_integers(member) for name, member in value.items()}
    if kind is list:
        return [with_integers(item) for item in value]
    return int(value) if kind is float and value.is_integer() and -(2**63) <= value < 2**63 else value


def _cleaned(value: JSON) -> JSON:
    if type(value) is dict:
        return {name: _cleaned(member) for name, member in value.items() if member is not None}
    return [_cleaned(item) for item in value] if type(value) is list else value


def _with_plain_data(secret: Object) -> Object:
    """`stringData` is write-only: the server encodes it into `data`, over what is there, and never shows it again."""
    plain, data = secret["stringData"], secret.get("data", {})
    if type(plain) is not dict or type(data) is not dict or not all(type(text) is str for text in plain.values()):
        return secret  # the server says what is wrong with it better than a guess of ours would
    rest = {name: value for name, value in secret.items() if name != "stringData"}
    if plain:
        rest["data"] = {**data, **{name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}}
    return rest
