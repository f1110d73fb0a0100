"""The three-way merge of an object that several parties write to, without I/O and without knowledge of rules.

`three_way` merges the desired state into the live object, given the fields that ruleop applied last. `merge_patch`
computes the request body. `Record` is what ruleop stores on the object, and `Learned` is what it keeps in memory of the
server's answers.
"""

from ruleop.kubernetes.merge.conflicts import MergeConflict, Step, conflicts
from ruleop.kubernetes.merge.equality import canonical, fingerprint, same
from ruleop.kubernetes.merge.fields import Fields, FieldSet, KeyedFields, Leaf, MapFields
from ruleop.kubernetes.merge.ignored import as_sent, ignored_at, with_live_places
from ruleop.kubernetes.merge.lists import MergeError, in_apply_order, item_key, item_keys, item_path, member_key
from ruleop.kubernetes.merge.patch import merge_patch, merge_patched
from ruleop.kubernetes.merge.path import Path, PathError, PathSelector, Segment, parse_path, scalar_text
from ruleop.kubernetes.merge.record import ANNOTATION, Record, RecordTooLargeError, decode, encode
from ruleop.kubernetes.merge.removals import removes_items_of_others
from ruleop.kubernetes.merge.server_changes import (
    Answers,
    Learned,
    UnwritableError,
    as_json,
    encode_string_data,
    is_stored_as,
    normalise_desired,
    normalise_ignored,
    with_integers,
    without_nulls,
)
from ruleop.kubernetes.merge.three_way import Merged, create_fields, three_way

__all__ = [
    "ANNOTATION",
    "Answers",
    "FieldSet",
    "Fields",
    "KeyedFields",
    "Leaf",
    "Learned",
    "MapFields",
    "MergeConflict",
    "MergeError",
    "Merged",
    "Path",
    "PathError",
    "PathSelector",
    "Record",
    "RecordTooLargeError",
    "Segment",
    "Step",
    "UnwritableError",
    "as_json",
    "as_sent",
    "canonical",
    "conflicts",
    "create_fields",
    "decode",
    "encode",
    "encode_string_data",
    "fingerprint",
    "ignored_at",
    "in_apply_order",
    "is_stored_as",
    "item_key",
    "item_keys",
    "item_path",
    "member_key",
    "merge_patch",
    "merge_patched",
    "normalise_desired",
    "normalise_ignored",
    "parse_path",
    "removes_items_of_others",
    "same",
    "scalar_text",
    "three_way",
    "with_integers",
    "with_live_places",
    "without_nulls",
]
