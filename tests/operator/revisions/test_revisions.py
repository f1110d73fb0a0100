"""The revisions of the rules are recorded once for each change, are bounded, and can be loaded again."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.language.rules import digest_of_files
from ruleop.language.rules.checking import build_project
from ruleop.language.rules.loading import build_unchecked
from ruleop.operator.revisions.revision_store import (
    MAX_BYTES,
    MAX_ENTRIES,
    MAX_KEPT,
    MAX_UNPACKED,
    Revision,
    Revisions,
    RevisionStore,
    decode,
    encode,
    files_of_revision,
    pack,
    unpack,
)
from ruleop.operator.rules.process import read_unchecked
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from tests.operator.controllers.controller_set_harness import project_of, watch
from tests.operator.fake_config_map import FakeConfigMap
from tests.operator.virtual_time import run_in_virtual_time
from tests.waiting import until

NOW = "2026-01-02T03:04:05Z"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
DIGESTS = st.sampled_from([str(number) * 64 for number in range(8)])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS | DIGESTS | st.just(NOW),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["digest", "since", "x"]), inner),
    max_leaves=12,
)
VARIABLES = "vars: {a: '${WORD}'}"


def config_map(revisions):
    return {"data": {"index": encode(revisions)}, "binaryData": dict(revisions.packed)}


def incompressible(size):
    return base64.b64encode(random.Random(size).randbytes(size)).decode()  # noqa: S311 - the same each time


# -- contents ----------------------------------------------------------------------------------------------------------


@given(st.dictionaries(TEXTS, TEXTS))
def test_packed_files_are_unpacked_as_they_were(files):
    packed = pack(files)
    assert packed is not None
    assert packed == pack(dict(reversed(files.items()))), "the same files have the same text"
    assert unpack(packed) == files


@given(st.lists(st.tuples(DIGESTS, st.booleans(), st.none() | st.integers(0, MAX_BYTES)), max_size=20))
def test_the_contents_are_bounded_and_survive_the_config_map(added):
    revisions = Revisions()
    for digest, reads_environment, size in added:
        files = None if size is None else "A" * (size // 3 * 4)
        revisions = revisions.recorded(Revision(digest, NOW, reads_environment), files)
        assert revisions.latest is not None
        assert revisions.latest.digest == digest
        assert (files is None) or revisions.is_recorded(digest), "the files of the latest revision are always kept"
        assert sum(len(each) * 3 // 4 for each in revisions.packed.values()) <= MAX_BYTES
        assert decode(config_map(revisions)) == revisions
    pairs = zip(revisions.index, revisions.index[1:], strict=False)
    assert all(one.digest != other.digest for one, other in pairs), "each entry is a change"


def test_many_revisions_leave_the_latest():
    revisions = Revisions()
    for number in range(MAX_ENTRIES + 5):
        revisions = revisions.recorded(Revision(f"{number:064}", NOW), "AAAA")
    assert [int(each.digest) for each in revisions.index] == list(range(5, MAX_ENTRIES + 5))
    assert [int(digest) for digest in revisions.packed] == list(range(MAX_ENTRIES + 4, MAX_ENTRIES + 4 - MAX_KEPT, -1))


def test_a_return_to_earlier_rules_is_a_revision_of_its_own():
    one, two = "1" * 64, "2" * 64
    revisions = Revisions()
    for digest in (one, two, one):
        revisions = revisions.recorded(Revision(digest, NOW), digest)
    assert [each.digest for each in revisions.index] == [one, two, one]
    assert revisions.packed == {one: one, two: two}
    assert revisions.find(one) is revisions.index[2]
    assert revisions.find("3" * 64) is None


@given(
    st.none()
    | st.fixed_dictionaries(
        {},
        optional={
            "data": st.none() | st.dictionaries(st.sampled_from(["index", "x"]), TEXTS | JSON.map(json.dumps) | JSON),
            "binaryData": JSON | st.dictionaries(DIGESTS, JSON | st.binary().map(base64.b64encode).map(bytes.decode)),
        },
    )
)
def test_an_edited_config_map_is_never_an_error(found):
    revisions = decode(found)
    for digest in [*revisions.packed, *(each.digest for each in revisions.index)]:
        assert files_of_revision(revisions, digest) is None
    again = revisions.recorded(Revision("a" * 64, NOW), "AAAA")
    assert decode(config_map(again)) == again


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(b"nonsense", id="not compressed"),
        pytest.param(base64.b64decode(pack({"a": "b" * 999}) or "")[:-9], id="truncated"),
        pytest.param(None, id="not base64"),
    ],
)
def test_invalid_files_are_ignored(files):
    assert unpack("?" if files is None else base64.b64encode(files).decode()) is None


@pytest.mark.slow
def test_files_that_would_unpack_to_more_than_the_limit_are_ignored_and_not_stored():
    assert pack({"a": "b" * MAX_UNPACKED}) is None
    assert pack({"a": incompressible(2 * MAX_BYTES)}) is None


def loaded(revisions, digest, environ=None):
    files = files_of_revision(revisions, digest)
    return build_unchecked(files, environ=environ or {}) if files is not None else None


# -- projects ----------------------------------------------------------------------------------------------------------


def test_the_project_of_a_revision_is_as_it_was_recorded():
    project = project_of(watch())
    revisions = Revisions().recorded(Revision(project.revision, NOW), pack(project.files))
    found = loaded(revisions, project.revision)
    assert found is not None
    assert (found.digest, found.revision) == (project.digest, project.revision)
    assert [each.digest for each in found.rules] == [each.digest for each in project.rules]


def test_other_files_under_the_digest_are_not_loaded():
    project, other = project_of(watch()), project_of(watch("Other"))
    revisions = Revisions().recorded(Revision(project.revision, NOW), pack(other.files))
    assert files_of_revision(revisions, project.revision) is None


def test_values_of_environment_variables_are_neither_stored_nor_in_the_digest():
    files = {"watches.yaml": watch(more=VARIABLES)}
    one, other = (build_project(files, root="rules", environ={"WORD": word}) for word in ("one", "other"))
    assert one.reads_environment
    assert (one.digest == other.digest, one.revision == other.revision) == (False, True)
    revisions = Revisions().recorded(Revision(one.revision, NOW, one.reads_environment), pack(one.files))
    found = loaded(revisions, one.revision, {"WORD": "other"})
    assert found is not None
    assert found.digest == other.digest, "the present environment counts"


# -- recording ---------------------------------------------------------------------------------------------------------


class Harness:
    def __init__(self, config_map=None):
        self.config_map = FakeConfigMap() if config_map is None else config_map
        self.config_map.key = ObjectKey("", "ConfigMap", "ops", "ruleop-revisions")
        self.store = RevisionStore(self.config_map, now=lambda: NOW, read_rules=partial(read_unchecked, variables={}))

    async def record(self, project):
        self.store.put_in_force(project)
        return await self.store.record()

    def recorded(self):
        return [each.digest for each in decode(self.config_map.as_object()).index]


ONE, TWO = project_of(watch()), project_of(watch("Other"))


async def test_a_change_of_the_rules_costs_one_write_and_a_restart_none():
    first = Harness()
    assert await first.record(ONE)
    assert await first.record(ONE)
    assert (first.recorded(), first.config_map.writes) == ([ONE.revision], 1)
    again = Harness(first.config_map)
    assert await again.record(ONE)
    assert again.config_map.writes == 1
    assert await again.record(TWO)
    assert (again.recorded(), again.config_map.writes) == ([ONE.revision, TWO.revision], 2)
    for project in (ONE, TWO):
        assert (await again.store.find(project.revision)).digest == project.digest
    assert await again.store.find("0" * 64) is None


async def test_lost_files_of_the_latest_revision_are_stored_again():
    harness = Harness()
    await harness.record(ONE)
    harness.config_map.binary = None
    assert await harness.record(ONE)
    assert harness.recorded() == [ONE.revision]
    assert decode(harness.config_map.as_object()).is_recorded(ONE.revision)


async def test_a_revision_that_this_environment_does_not_accept_is_not_found():
    harness = Harness()
    await harness.record(build_project({"watches.yaml": watch(more=VARIABLES)}, root="rules", environ={"WORD": "a"}))
    (digest,) = harness.recorded()
    harness.store.put_in_force(ONE)
    with capture_logs() as lines:
        assert await harness.store.find(digest) is None
    (line,) = lines
    assert (line["event"], line["revision"]) == ("revision of the rules cannot be used", digest[:12])
    assert "WORD" in line["errors"]


@pytest.mark.slow
async def test_a_project_that_is_too_large_is_in_the_index_and_its_files_are_not_kept():
    harness, files = Harness(), {**ONE.files, "templates/large": incompressible(2 * MAX_BYTES)}
    large = SimpleNamespace(files=files, revision=digest_of_files(files), reads_environment=False, root="rules")
    with capture_logs() as lines:
        await harness.record(large)
        await harness.record(large)
    assert (harness.recorded(), harness.config_map.writes) == ([large.revision], 1)
    assert not decode(harness.config_map.as_object()).packed
    assert lines[0]["event"] == "the project is too large: its files are not kept"


async def test_another_writer_is_not_overwritten():
    harness = Harness()
    await harness.record(ONE)
    read = harness.config_map.read

    async def read_late():
        found = await read()
        harness.config_map.version += 1
        return found

    harness.config_map.read = read_late
    assert not await harness.record(TWO)
    assert harness.recorded() == [ONE.revision]
    harness.config_map.read = read
    assert await harness.record(TWO)


async def test_each_change_is_recorded_while_it_runs():
    harness = Harness()
    task = asyncio.create_task(harness.store.run())
    for project in (ONE, TWO, ONE):
        harness.store.put_in_force(project)
        await until("it to be recorded", lambda project=project: harness.recorded()[-1:] == [project.revision])
    assert len(harness.recorded()) == 3
    task.cancel()


@pytest.mark.slow
def test_a_missing_permission_is_logged_once_and_retried():
    async def scenario():
        harness = Harness()
        read, asked = harness.config_map.read, []

        async def denied():
            asked.append(1)
            if len(asked) > 5:
                return await read()
            raise ApiError(Problem.FORBIDDEN, verb="get", resource="configmaps", text="no")

        harness.config_map.read = denied
        harness.store.put_in_force(ONE)
        with capture_logs() as lines:
            task = asyncio.create_task(harness.store.run())
            await until("it to be recorded", harness.recorded, patience=10_000)
            task.cancel()
        warnings = [line for line in lines if line["log_level"] == "warning"]
        assert [line["event"] for line in warnings] == ["revision of the rules not recorded; will retry"]
        assert warnings[0]["grant"] == "get, create, update on configmaps in namespace ops"

    run_in_virtual_time(scenario())
