"""The Dockerfile of an image that holds the rules of a project."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from ruleop.authoring.generate.crd.generated_crds import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.authoring.generate.installation.operator_choices import Choices

_HEADER: Final = f"{MARK} image` from the rules and ruleop.yaml: change them there.\n"
_PLAIN: Final = re.compile(r"[\w./-]+", re.ASCII)


def image_files(paths: Iterable[str], choices: Choices, base: str) -> dict[str, str]:
    """The Dockerfile, and the file that keeps everything else of the project's folder out of the build.

    `paths`: the files of the project. `base`: the generic image.
    """
    tops = sorted({path.partition("/")[0] + ("/" if "/" in path else "") for path in paths})
    about = choices.about
    described = {"description": about.summary, "url": about.homepage, "vendor": about.provider}
    labels = {
        "title": _quoted(about.title or choices.name),
        **{name: _quoted(text) for name, text in described.items() if text},
        "version": choices.version,
        "revision": "${REVISION}",
        "base.name": "${BASE}",
    }
    lines = [
        "# The generic image; a digest (name@sha256:...) makes sure that it is always the same.",
        f"ARG BASE={base}",
        "FROM ${BASE}",
        "ARG BASE",
        "# The commit of the rules.",
        "ARG REVISION=",
        "LABEL " + " \\\n      ".join(f'org.opencontainers.image.{name}="{text}"' for name, text in labels.items()),
        *(_copy(each) for each in tops),
        'CMD ["run", "--no-reload"]',
    ]
    ignored = ["*", *(f"!{each.removesuffix('/')}" for each in tops)]
    return {
        "Dockerfile": _HEADER + "".join(f"{line}\n" for line in lines),
        ".dockerignore": _HEADER + "".join(f"{line}\n" for line in ignored),
    }


def _quoted(text: str) -> str:
    """In double quotes of a Dockerfile."""
    return re.sub(r'([\\"$])', r"\\\1", text)


def _copy(path: str) -> str:
    target = f"/rules/{path}"
    return f"COPY {path} {target}" if _PLAIN.fullmatch(path) else f"COPY {json.dumps([path, target])}"
