"""The changes that the API server makes to every object before storing it.

Some are made beforehand, so that desired and live compare (`normalise_desired`). By others a live value may differ from
the desired one (`is_stored_as`): the server fills in a default for a missing field, drops an empty field, and writes a
quantity in another spelling. These are not differences. In a list or map that is replaced as a whole, anything else is
one, because all of it is desired; elsewhere the merge compares only desired fields.

Only changes that apply to a whole kind are here. Changes to single values are learned from the server's answers
(`ruleop.kubernetes.merge.server.learned`).
"""

from __future__ import annotations

import base64

import orjson

from ruleop.errors import RuleopError
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.kinds import JSON, Kind, Object
from ruleop.kubernetes.merge.equality import canonical, same
from ruleop.kubernetes.merge.path import Path
from ruleop.kubernetes.quantity import quantity_equal
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape

_SECRET = Kind("", "v1", "Secret")
_CLUSTER_ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole")


class UnwritableError(RuleopError):
    """A value that cannot be sent in a request."""


def normalise_desired(desired: Object, kind: Kind) -> Object:
    """`desired` as the server would store it: without nulls and without the `rules` of an aggregated ClusterRole, a
    Secret's `stringData` as `data`, whole numbers of a custom resource as integers. For a built-in kind it is `desired`
    itself if it is so already. Raises UnwritableError."""
    if b"null" in as_json(desired):
        desired = _drop_nulls(desired)
    if builtin_resource(kind.versionless) is None:  # in a built-in kind, the server may reject the float
        desired = with_integers(desired)
    if kind == _SECRET and "stringData" in desired:
        return encode_string_data(desired)
    if (
        kind == _CLUSTER_ROLE and "aggregationRule" in desired and "rules" in desired
    ):  # a controller of the server fills them in
        return {name: value for name, value in desired.items() if name != "rules"}
    return desired


def as_json(value: JSON) -> bytes:
    """Raises UnwritableError."""
    try:
        return orjson.dumps(value)
    except TypeError as error:  # half of a surrogate pair, or a live value that is nested too deep for orjson
        raise UnwritableError(f"cannot be written as JSON ({error})") from None


def normalise_ignored(path: Path, desired: Object, kind: Kind) -> tuple[Path, ...]:
    """The paths of `apply.ignore` after normalisation: `stringData.x` of a Secret becomes `data.x`, and `stringData`
    becomes the path of each name in it."""
    first, *rest = path.segments
    if kind != _SECRET or first != "stringData":
        return (path,)
    plain = desired.get("stringData")
    below = [rest] if rest else [[name] for name in plain] if type(plain) is dict else []
    return tuple(Path(("data", *segments), path.text) for segments in below)


def without_nulls(value: JSON) -> JSON:
    """The value without null members, at any depth. A null item of a list is a value, and is kept."""
    if b"null" not in canonical(value):  # fast; a string that contains the word only costs the walk
        return value
    return _drop_nulls(value)


def with_integers(value: JSON) -> JSON:
    """The value with floats without a fraction as integers, at any depth, in the range of the server's integers. Go
    writes the float 50 as `50`, which is read as an integer."""
    kind = type(value)
    if kind is dict:
        return {name: with_integers(member) for name, member in value.items()}
    if kind is list:
        return [with_integers(item) for item in value]
    return int(value) if kind is float and value.is_integer() and -(2**63) <= value < 2**63 else value


def _drop_nulls(value: JSON) -> JSON:
    if type(value) is dict:
        return {name: _drop_nulls(member) for name, member in value.items() if member is not None}
    return [_drop_nulls(item) for item in value] if type(value) is list else value


def encode_string_data(secret: Object) -> Object:
    """The Secret with `stringData` encoded into `data`, where it overrides existing keys. The server does the same and
    never returns `stringData`."""
    plain, data = secret["stringData"], secret.get("data", {})
    if type(plain) is not dict or type(data) is not dict or not all(type(text) is str for text in plain.values()):
        return secret  # the server's error message is better than a guess
    rest = {name: value for name, value in secret.items() if name != "stringData"}
    if plain:
        rest["data"] = {**data, **{name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}}
    return rest


def is_stored_as(live: JSON, desired: JSON, shape: Shape) -> bool:
    """Whether the server stores `desired` as `live` by the kind's schema alone. None means missing."""
    if same(live, desired):
        return True
    if type(live) is dict and type(desired) is dict:
        return all(_is_member_stored_as(live, desired, name, shape) for name in live.keys() | desired.keys())
    if type(live) is list and type(desired) is list:
        items = shape.items or UNKNOWN
        return len(live) == len(desired) and all(
            is_stored_as(one, other, items) for one, other in zip(live, desired, strict=True)
        )
    if live is None:
        return shape.drops_empty and not desired
    return shape.format == "quantity" and quantity_equal(live, desired)


def is_omitted_default(value: JSON, name: str, parent: Shape) -> bool:
    """Whether the value is the default of this property, which the server may leave out."""
    return name in parent.defaults and same(value, parent.defaults[name])


def _is_member_stored_as(live: Object, desired: Object, name: str, parent: Shape) -> bool:
    live_member, desired_member = live.get(name), desired.get(name)
    shape = parent.fields.get(name) or parent.values or UNKNOWN
    if desired_member is None:
        return is_stored_as(live_member, parent.defaults.get(name), shape)
    return is_stored_as(live_member, desired_member, shape) or (
        live_member is None and is_omitted_default(desired_member, name, parent)
    )
