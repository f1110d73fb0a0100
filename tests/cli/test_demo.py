"""`make demo` runs to its end, and shows what it promises."""

import os
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "bench/demo.sh"


def test_the_demo_runs_and_prints_its_results(tmp_path):
    program = tmp_path / "ruleop"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from ruleop.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    (tmp_path / "python").symlink_to(sys.executable)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([DEMO, program], capture_output=True, text=True, env=environ, timeout=100, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    for line in ("+ create Deployment/app-deployment", "      spec.replicas: 5 -> 2", "1 to change.", "1 error."):
        assert f"\n{line}\n" in ran.stdout


def test_the_demo_without_ruleop_names_the_make_target():
    ran = subprocess.run([DEMO, "no-such-ruleop"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "demo.sh: no program no-such-ruleop; run: make demo\n")
