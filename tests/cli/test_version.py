import json
import platform
from importlib import metadata

import pytest


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_version_prints_the_versions_of_ruleop_python_and_the_client_library(ruleop, arguments):
    assert ruleop(*arguments).out == (
        f"ruleop     {metadata.version('ruleop')}\npython     {platform.python_version()}\nkubernetes {metadata.version('kubernetes')}\n"
    )
    assert json.loads(ruleop("version", "-o", "json").out) == {
        "ruleop": metadata.version("ruleop"),
        "python": platform.python_version(),
        "kubernetes": metadata.version("kubernetes"),
    }
