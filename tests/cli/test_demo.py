"""`make demo` runs to its end and prints its results."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

DEMO = Path(__file__).parents[2] / "bench/demo.py"


@pytest.mark.slow
def test_the_demo_runs_and_prints_its_results():
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, DEMO], capture_output=True, text=True, env=environ, timeout=PATIENCE, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    for line in (
        r"\+ create Deployment/app-deployment",
        r"App default/app-sample +ready",
        r"├─ deployment +ready  Deployment/app-deployment: 3 of 3 pods",
        r"Service app-service: uid \S+ -> \S+",
        r"Deployment app-deployment: spec.replicas 9 -> 3",
        r"App default/app-other +ErrResourceExists: .*app-service.*",
    ):
        assert re.search(rf"^{line}$", ran.stdout, re.MULTILINE), line
