"""A ConfigMap's volume as the kubelet writes it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path


def publish(folder: Path, date: str, files: Mapping[str, str]) -> None:
    """The folder contains links into `..data`, itself a link to a folder with a date for its name. New content is a
    new folder of that kind, and a rename turns `..data` to it. A path may have folders: then its first part is the
    link."""
    old = (folder / "..data").readlink() if (folder / "..data").is_symlink() else None
    for path, text in files.items():
        (folder / date / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / date / path).write_text(text)
        top = path.partition("/")[0]
        if not (folder / top).is_symlink():
            (folder / top).symlink_to(f"..data/{top}")
    (folder / "..data_tmp").symlink_to(date)
    (folder / "..data_tmp").rename(folder / "..data")
    if old is not None:
        shutil.rmtree(folder / old)
