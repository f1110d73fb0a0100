"""All commands know the operator of a project by one name, that of ruleop.yaml."""

from __future__ import annotations

import pytest

from ruleop.errors import RuleopError


@pytest.fixture
def shop(tmp_path, monkeypatch, ruleop):
    """A new project, whose operator is named `shop`."""
    monkeypatch.chdir(tmp_path)
    assert ruleop("init", ".", "--kind", "Shop").status == 0
    return tmp_path


class StartedError(RuleopError):
    """The operator would start now."""


@pytest.fixture
def started(monkeypatch):
    """The options of each operator that a command starts."""
    found = []

    def take(*arguments, **_):
        found.append(next(each for each in arguments if hasattr(each, "leader_elect")))
        raise StartedError("started")

    monkeypatch.setattr("ruleop.cli.run.Manager", take)
    monkeypatch.setattr("ruleop.cli.dev.DevSession", take)
    return found


@pytest.mark.parametrize("command", ["run", "dev"])
def test_the_operator_has_the_name_of_the_file(shop, ruleop, started, command):
    ruleop(command)
    assert [each.name for each in started] == ["shop"]


@pytest.mark.slow
def test_the_flag_and_its_variable_override_the_file(shop, ruleop, started, monkeypatch):
    ruleop("run", "--name", "one")
    monkeypatch.setenv("RULEOP_NAME", "two")
    ruleop("run")
    assert [each.name for each in started] == ["one", "two"]


def test_without_the_file_the_name_is_ruleop(shop, ruleop, started):
    (shop / "ruleop.yaml").unlink()
    ruleop("run")
    assert [each.name for each in started] == ["ruleop"]


@pytest.mark.parametrize(
    "choices", ["", "namespaces: [a, b]\n", "selector: team=a\n", "shards: 2\n", "metricsAuth: true\n"]
)
def test_check_finds_no_permission_missing_in_the_generated_roles(shop, ruleop, choices):
    (shop / "ruleop.yaml").write_text(f"name: shop\nnamespace: shop-system\n{choices}")
    (shop / "roles.yaml").write_text(ruleop("generate", "rbac").out)
    ran = ruleop("check", "--rbac", "roles.yaml", "--strict")
    assert (ran.status, ran.out) == (0, "No errors in 1 rule, 2 children, 2 templates, 1 CRD.\n")


def test_without_the_file_check_expects_the_permissions_of_run_without_flags(shop, ruleop):
    (shop / "ruleop.yaml").unlink()
    (shop / "roles.yaml").write_text("")
    ran = ruleop("check", "--rbac", "roles.yaml")
    assert "(ruleop-inventory)" in ran.out
    assert "leases" not in ran.out


@pytest.mark.parametrize(
    "command", [["history", "Shop/a"], ["rollout", "status"], ["explain", "Shop/a"], ["run"], ["check", "--rbac", "x"]]
)
def test_a_mistake_in_the_file_ends_a_command_that_needs_the_name(shop, ruleop, command):
    """It could work on another operator, which has the default name."""
    (shop / "ruleop.yaml").write_text("nam: shop\n")
    (shop / "x").write_text("")
    ran = ruleop(*command)
    assert ran.status != 0
    assert 'unknown key "nam" in ruleop.yaml (did you mean "name"?)' in ran.out + ran.err
