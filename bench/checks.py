"""What `ruleop check` costs for projects of fifty watches: copies of the examples, each with a kind of its own.

python bench/checks.py
"""

from __future__ import annotations

import gc
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ruleop.authoring.checking import check_project  # noqa: E402
from ruleop.language.rules.checking import build_with_sources  # noqa: E402

WATCHES = 50
PROJECTS = (
    ("", ("App", "Memcached")),
    ("examples/crontab", ("CronTab",)),
    ("examples/wordpress", ("WordPress",)),
    ("examples/postgres", ("Postgres",)),
)


def copies(folder: Path, kinds: tuple[str, ...]) -> dict[str, str]:
    """The files of a project with this number of watches."""
    files: dict[str, str] = {}
    watches = []
    for number in range(WATCHES // len(kinds)):

        def renamed(text: str, mark: str = f"x{number}") -> str:
            for kind in kinds:
                text = re.sub(rf"\b({kind}|{kind.lower()}(?:(?:es|s)(?!/))?)\b(?![-_])", rf"\1{mark}", text)
            return text

        for file in [*folder.glob("templates/**/*.j2"), *folder.glob("crds/*.yaml")]:
            path = file.relative_to(folder).as_posix()
            files[renamed(path) if path.startswith("templates/") else f"crds/{number}-{file.name}"] = renamed(
                file.read_text()
            )
        watches.append(renamed((folder / "watches.yaml").read_text()))
    return {**files, "watches.yaml": "\n".join(watches)}


def main() -> None:
    print(f"{'ruleop check, CPU seconds':<28}{'watches':>9}{'children':>10}{'load':>8}{'check':>8}{'findings':>10}")
    gc.disable()  # as the command
    for name, kinds in PROJECTS:
        files = copies(ROOT / name, kinds)
        start = time.process_time()
        loaded = build_with_sources(files, root="/nowhere", environ={})
        middle = time.process_time()
        findings = check_project(loaded)
        end = time.process_time()
        children = sum(len(watch.rule.every_child) for watch in loaded.watches)
        row = f"{name or 'this repository':<28}{len(loaded.watches):>9}{children:>10}"
        print(f"{row}{middle - start:>8.2f}{end - middle:>8.2f}{len(findings):>10}")
        gc.collect()


if __name__ == "__main__":
    main()
