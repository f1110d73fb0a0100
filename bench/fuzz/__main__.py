"""The commands: search, and replay one case."""

from __future__ import annotations

import argparse
import gc
import math
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.fuzz.case import read
from bench.fuzz.genes import case_of
from bench.fuzz.limited import Limits, run
from bench.fuzz.minimise import minimised
from bench.fuzz.search import BOUND_MIB, BOUND_SECONDS, Entry, Options, Search, State, ordered, over

if TYPE_CHECKING:
    from bench.fuzz.one_pass import Reading

FOLDER: Final = Path(__file__).resolve().parents[2] / ".fuzz"
REPLAYED: Final = Limits(seconds=120, enough=math.inf, mib=4096)
HEAD: Final = f"{'seconds':>8} {'MiB':>7} {'counted':>7} {'KiB':>7} {'text':>6}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="How long to search.")
    parser.add_argument("--seed", type=int, default=1, help="Seed; each seed has its own state.")
    parser.add_argument("--workers", type=int, default=2, help="Candidates that are measured at once.")
    parser.add_argument("--minimise", type=float, default=0.25, help="Part of the time for minimising findings.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="Where the state and the cases are kept.")
    parser.add_argument("--fresh", action="store_true", help="Restart instead of resuming.")
    parser.add_argument("--replay", type=Path, action="append", default=[], help="Measure a case file instead.")
    arguments = parser.parse_args()
    gc.collect()
    gc.freeze()  # a forked process need not copy these pages
    if arguments.replay:
        return _replay(arguments.replay)
    return _search(arguments)


def _replay(paths: list[Path]) -> int:
    """Whether each case is within the bounds."""
    print(HEAD, " case")
    worst = 0
    for path in paths:
        reading = run(read(path), REPLAYED)
        print(_row(reading), path) if reading is not None else print(f"{'unusable':>8}", path)
        worst |= reading is None or bool(over(reading))
        if reading is not None:
            print(
                f"{'':>8} passes {reading.phases}; hot: {reading.hot or '-'}; ended: {reading.ended} {reading.failed}"
            )
    return int(worst)


def _search(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    folder.mkdir(exist_ok=True)
    path = folder / f"state-{arguments.seed}.json"
    if arguments.fresh:
        path.unlink(missing_ok=True)
    state = State.load(path, arguments.seed)
    seconds, minimising = arguments.minutes * 60, arguments.minutes * 60 * arguments.minimise
    try:
        Search(state, path).run(
            Options(seconds - minimising, arguments.workers),
            lambda found: print(_progress(found), flush=True),
        )
    except KeyboardInterrupt:
        print("stopped; the next run resumes")
        minimising = 0.0
    print(_progress(state))
    _write_cases(state, folder / "cases", minimising)
    return 0


def _progress(state: State) -> str:
    return (
        f"{state.seconds:6.0f} s, {state.cpu_seconds / 60:.1f} min of CPU: {state.runs} candidates, "
        f"{state.unusable} unusable, {len(state.cells)} hot functions, {len(state.findings)} over a bound"
    )


def _write_cases(state: State, folder: Path, seconds: float) -> None:
    """Prints the findings, and writes each, minimised if there is time."""
    folder.mkdir(exist_ok=True)
    print(f"\n{HEAD} {'after s':>8}  over, in (bounds: {BOUND_SECONDS} s, {BOUND_MIB} MiB)")
    found = list(ordered(state))
    for name, entry in found:
        reading = entry.reading
        print(f"{_row(reading)} {state.first.get(name, 0):8.0f}  {name}; {reading.where}: {reading.ended}")
    share = seconds / len(found) if found else 0.0
    for name, entry in found:
        small = minimised(entry, share) if share else entry
        _write(folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.yaml", name, small)
    print(f"\n{len(found)} cases in {folder}; replay one with: make fuzz REPLAY=FILE")


def _write(path: Path, name: str, entry: Entry) -> None:
    case = case_of(entry.gene)
    reading = {key: value for key, value in entry.reading.as_json().items() if value}
    path.write_text(type(case)(**vars(case) | {"found": reading, "note": name}).text(), encoding="utf-8")


def _row(reading: Reading) -> str:
    return f"{reading.seconds:8.2f} {reading.mib:7.0f} {reading.counted:7.0f} {reading.kib:7.0f} {reading.longest:6}"


if __name__ == "__main__":
    sys.exit(main())
