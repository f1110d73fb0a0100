"""After the operator has settled, `plan --live` has nothing to do in any example, and `explain` explains each
resource."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from ruleop.cli.program import program
from ruleop.localcluster import LocalCluster
from tests.authoring.live.harness import new_live
from tests.exploration import others_slow

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted(each.parent.name for each in ROOT.glob("examples/*/watches.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("name", others_slow(EXAMPLES, "crontab"))
def test_an_example_is_as_its_rules_desire(name, tmp_path):
    shutil.copytree(ROOT / "examples" / name, tmp_path / "project")
    if not (tmp_path / "project/crds").exists():
        made = CliRunner().invoke(
            program, ["generate", "crd", "-C", str(tmp_path / "project"), "--out", str(tmp_path / "project/crds")]
        )
        assert made.exit_code == 0, made.output
    existing, samples = (
        [
            each
            for file in sorted((tmp_path / "project" / folder).glob("*.yaml"))
            for each in yaml.safe_load_all(file.read_text("utf-8"))
        ]
        for folder in ("existing", "examples")
    )
    with LocalCluster() as cluster:
        live = new_live(tmp_path / "project", cluster, {})
        for each in (*existing, *samples):
            live.apply(yaml.safe_dump(each))
        kinds = {each["kind"] for each in samples}
        for _ in range(5):  # what waits for another resource may continue when the operator has just stopped
            live.converge(lambda: all({"Ready", "Waiting"} >= set(live.reasons(kind)) > set() for kind in kinds))
            status, out, err = live.run("plan", "--live", "--all")
            assert (status, err) == (0, "")
            if out.startswith(f"0 of {len(samples)} would change"):  # it may have stopped before a status
                break
        assert out.startswith(f"0 of {len(samples)} would change")
        for each in samples:
            place = ("-n", namespace) if (namespace := each["metadata"].get("namespace")) else ()
            status, out, _ = live.run("explain", f"{each['kind']}/{each['metadata']['name']}", *place)
            assert status == 0
            assert out.startswith(each["kind"])
            assert "fields that ruleop sets are as it wrote them" in out
