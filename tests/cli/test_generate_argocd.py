"""`ruleop generate argocd`: a part of Argo CD's ConfigMap, in a file or on stdout."""

from __future__ import annotations

import yaml

from tests.cli.generated_project import WATCHES, project

__all__ = ["project"]


def test_a_part_of_the_config_map_of_argo_cd_is_printed(ruleop, project):
    ran = ruleop("generate", "argocd", "-C", str(project), "--argocd-namespace", "gitops")
    assert (ran.status, ran.err) == (0, "")
    found = yaml.safe_load(ran.out)
    assert (found["metadata"]["name"], found["metadata"]["namespace"]) == ("argocd-cm", "gitops")
    assert list(found["data"]) == ["resource.customizations.health.example.com_Site"]


def test_the_file_of_a_project_is_kept_current(ruleop, project, tmp_path):
    command = ("generate", "argocd", "-C", str(project), "--out", str(tmp_path / "out"))
    assert ruleop(*command, "--check").status == 1
    assert ruleop(*command).status == 0
    assert ruleop(*command, "--check").status == 0
    assert (tmp_path / "out" / "argocd-cm.yaml").exists()


def test_a_kind_without_conditions_is_left_out_with_a_note(ruleop, project):
    other = WATCHES.replace("kind: Site", "kind: Page\n  manageStatus: false")
    (project / "watches.yaml").write_text(WATCHES + other)
    ran = ruleop("generate", "argocd", "-C", str(project))
    assert ran.err == "note: Page: the rules write no status, so its health is left to Argo CD\n"
    assert "Page" not in ran.out
    (project / "watches.yaml").write_text(other)
    ran = ruleop("generate", "argocd", "-C", str(project))
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.endswith("ruleop: no kind has the conditions of ruleop: there is nothing to generate\n")


def test_an_invalid_namespace_is_wrong_usage(ruleop, project):
    ran = ruleop("generate", "argocd", "-C", str(project), "--argocd-namespace", "a b")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("ruleop: --argocd-namespace must be up to 63 lowercase letters")
