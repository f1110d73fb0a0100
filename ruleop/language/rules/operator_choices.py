"""The choices of a project for its operator in a cluster: `ruleop.yaml`, or options of `ruleop generate`.

All commands take the operator's name from here, unless `--name` gives another. The table is the only declaration of its
keys: the parser and the JSON Schema come from it.

`about` has the description of the operator in a catalogue.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Final, Literal, get_args

from ruleop import __version__
from ruleop.errors import Site
from ruleop.files import read_inside, why_unreadable
from ruleop.kubernetes.labels import label_requirements
from ruleop.kubernetes.names import DEFAULT_OPERATOR, LABEL, MAX_LABEL, MOST_OF_NAME
from ruleop.language.rules.findings import Finding, Findings, ProjectErrors
from ruleop.language.rules.keys.tables import Table, TableOf, key, table_schema
from ruleop.language.rules.keys.value_types import (
    Count,
    FileReading,
    Flag,
    ListOf,
    MapOf,
    NamedEntry,
    TextValue,
    Word,
    WordChoice,
)
from ruleop.language.templates import read_yaml
from ruleop.language.templates.compile import Library
from ruleop.nearest import did_you_mean_quoted
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.rules.loading import Loaded


LINE: Final = TextValue(r"[^\s](.*[^\s])?", "one line of text")
ANY_TEXT: Final = TextValue(r"(?s:.*\S.*)", "text that is not empty")
URL: Final = TextValue(r"https?://[^\s]+", "an address such as https://example.com")
EMAIL: Final = TextValue(r"[^\s@]+@[^\s@]+\.[^\s@]+", "an e-mail address")
ICON: Final = TextValue(r"[^\n]+\.(?:svg|png|jpg|gif)", "a file that ends in .svg, .png, .jpg or .gif")


@dataclass(frozen=True, slots=True)
class MaintainerTable(Table):
    TITLE: ClassVar[str] = "a maintainer"
    DEFINITION: ClassVar[str] = "maintainer"

    name: Word | None = key("name", LINE, "The name of a person or team.", required=True)
    email: Word | None = key("email", EMAIL, "The e-mail address.", required=True)


@dataclass(frozen=True, slots=True)
class AboutTable(Table):
    TITLE: ClassVar[str] = '"about"'
    DEFINITION: ClassVar[str] = "about"

    title: Word | None = key("title", LINE, "The name of the operator for people. Default: its name.")
    summary: Word | None = key("summary", LINE, "One sentence.")
    description: Word | None = key("description", ANY_TEXT, "A page in Markdown. Default: the summary.")
    provider: Word | None = key("provider", LINE, "The company or team that provides it.")
    homepage: Word | None = key("homepage", URL, "An address.")
    maintainers: tuple[MaintainerTable, ...] = key(
        "maintainers", ListOf(TableOf(MaintainerTable), "a maintainer"), "Who maintains it.", default=[]
    )
    keywords: tuple[Word, ...] = key("keywords", ListOf(LINE, "a keyword"), "Words to search for.", default=[])
    icon: Word | None = key("icon", ICON, "A file with its icon, relative to the project's folder.")


TABLES: Final[tuple[type[Table], ...]] = (AboutTable, MaintainerTable)


@dataclass(frozen=True, slots=True)
class About:
    title: str = ""
    summary: str = ""
    description: str = ""
    provider: str = ""
    homepage: str = ""
    maintainers: tuple[tuple[str, str], ...] = ()  # names and addresses
    keywords: tuple[str, ...] = ()
    icon: tuple[str, Site] | None = None


def about(table: AboutTable) -> About:
    texts = {
        name: word.text if word is not None else ""
        for name, word in (
            ("title", table.title),
            ("summary", table.summary),
            ("description", table.description),
            ("provider", table.provider),
            ("homepage", table.homepage),
        )
    }
    people = tuple((each.name.text, each.email.text) for each in table.maintainers if each.name and each.email)
    icon = (table.icon.text, table.icon.site) if table.icon is not None else None
    return About(**texts, maintainers=people, keywords=tuple(each.text for each in table.keywords), icon=icon)


FILE: Final = "ruleop.yaml"

GENERIC_IMAGE: Final = f"ruleop:{__version__}"

Rules = Literal["configmap", "image"]

NAME: Final = TextValue(LABEL, f'up to {MOST_OF_NAME} lowercase letters, digits and "-"', MOST_OF_NAME)
NAMESPACE: Final = TextValue(LABEL, f'up to {MAX_LABEL} lowercase letters, digits and "-"', MAX_LABEL)
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAMED: Final = (
    rf"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?"
)
_DIGEST: Final = "@sha256:[0-9a-f]{64}"
IMAGE: Final = TextValue(rf"{_NAMED}(?:{_DIGEST})?", "an image such as registry.example.com/operator:1.2.0")
RULES_IMAGE: Final = TextValue(
    f"{_NAMED}{_DIGEST}",
    "an image with its digest, such as registry.example.com/rules:1.2.0@sha256:... "
    "(`docker buildx imagetools inspect IMAGE` prints it)",
)
VERSION: Final = TextValue(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?", 'a version such as "1.2.0"'
)
SELECTOR: Final = TextValue(r"[^\x00-\x1f]+", "a label selector such as team=a")
VARIABLE: Final = TextValue(r"[^\x00]*", "text without the character NUL")


_KEYS_OF_VARIABLES: Final = {
    "RULEOP_NAME": "name",
    "RULEOP_OPERATOR_NAMESPACE": "namespace",
    "RULEOP_NAMESPACES": "namespaces",
    "WATCH_NAMESPACE": "namespaces",
    "RULEOP_LEADER_ELECT": "leaderElect",
    "RULEOP_METRICS_AUTH": "metricsAuth",
    "RULEOP_SELECTOR": "selector",
    "RULEOP_SHARDS": "shards",
}
"""Flags of `ruleop run` on which the roles depend, so that a variable alone would leave the operator without some."""


@dataclass(frozen=True, slots=True)
class ChoicesTable(Table):
    TITLE: ClassVar[str] = FILE
    DEFINITION: ClassVar[str] = "choices"

    name: Word = key(
        "name",
        NAME,
        "The name of the operator, and of its account, roles, Lease, inventory and finalizer.",
        default=DEFAULT_OPERATOR,
    )
    namespace: Word = key("namespace", NAMESPACE, "The namespace in which the operator runs.", default="ruleop-system")
    namespaces: tuple[Word, ...] = key(
        "namespaces", ListOf(NAMESPACE, "a namespace"), "The namespaces that it watches; all without it.", default=[]
    )
    image: Word | None = key("image", IMAGE, f"The image that runs. Default: {GENERIC_IMAGE}, the generic image.")
    version: Word = key("version", VERSION, "The version of the operator that these rules make.", default="0.1.0")
    rules: Rules = key(
        "rules",
        WordChoice(get_args(Rules)),
        "configmap: the generic image, with the rules mounted. image: an image that holds the rules.",
        default="configmap",
    )
    rules_image: Word | None = key(
        "rulesImage",
        RULES_IMAGE,
        "An image of rules alone, mounted on the generic image instead of a ConfigMap. Needs Kubernetes 1.35.",
    )
    replicas: int = key("replicas", Count(1), "The number of pods; one works, the others stand by.", default=1)
    leader_elect: bool = key(
        "leaderElect", Flag(), "Use a Lease, so that never two pods work at the same time.", default=True
    )
    shards: int = key(
        "shards",
        Count(0),
        "More than 0: the number of pods, of a StatefulSet, that divide the custom resources.",
        default=0,
    )
    selector: Word | None = key(
        "selector", SELECTOR, "Only custom resources with these labels, such as team=a; another operator has the rest."
    )
    env: tuple[NamedEntry[Word], ...] = key(
        "env",
        MapOf(VARIABLE, "the variable", r"[-._a-zA-Z][-._a-zA-Z0-9]*", 'letters, digits, "-", "_" and "."'),
        "Environment variables of the operator, such as watches.yaml reads.",
        default={},
    )
    metrics_auth: bool = key(
        "metricsAuth", Flag(), "Serve /metrics with TLS, only to users whom the cluster permits it.", default=False
    )
    about: AboutTable | None = key("about", TableOf(AboutTable), "What a catalogue says about it.")


@dataclass(frozen=True, slots=True)
class Choices:
    name: str = DEFAULT_OPERATOR
    namespace: str = "ruleop-system"
    namespaces: tuple[str, ...] = ()  # empty for all
    image: str = GENERIC_IMAGE
    version: str = "0.1.0"
    rules: Rules = "configmap"
    rules_image: str = ""  # an image volume in place of the ConfigMap
    replicas: int = 1
    leader_elect: bool = True
    shards: int = 0
    selector: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    metrics_auth: bool = False
    about: About = field(default_factory=About)
    env_sites: Mapping[str, Site] = field(default_factory=dict)

    @property
    def reloads(self) -> bool:
        """Whether the rules of a running pod can change."""
        return self.rules == "configmap" and not self.rules_image

    @property
    def image_parts(self) -> tuple[str, str, str]:
        """Repository, tag and digest. An image with neither of the latter has the version as its tag."""
        tagged, _, digest = self.image.partition("@")
        folder, slash, last = tagged.rpartition("/")
        name, _, tag = last.partition(":")
        return f"{folder}{slash}{name}", tag or ("" if digest else self.version), digest


def read_choices(root: Path) -> Choices:
    """Those of the project in a folder. Raises ProjectErrors with all mistakes of the file."""
    try:
        text = read_inside(root / FILE, root).decode()
    except (FileNotFoundError, NotADirectoryError):
        return Choices()
    except UnicodeDecodeError:
        raise ProjectErrors.of("unreadable", "it is not valid UTF-8", Site(FILE)) from None
    except OSError as error:
        raise ProjectErrors.of("unreadable", why_unreadable(error), Site(FILE)) from None
    findings = Findings({FILE: text})
    documents, mistakes = read_yaml(text, FILE)
    findings.take(mistakes, "yaml")
    if len(documents) > 1:
        findings.mistake("yaml", "must be one document", documents[1].site)
    reading = FileReading(Library({}), findings)
    tables = [TableOf(ChoicesTable).read(each, FILE, reading) for each in documents if each.value is not None]
    for table in filter(None, tables):
        _check_together(table, findings)
    if findings.failed:
        raise ProjectErrors(findings.sorted())
    return _choices(tables[0]) if tables and tables[0] is not None else Choices()


def _check_together(table: ChoicesTable, findings: Findings) -> None:
    """Finds keys that exclude each other, and values with mistakes of their own."""
    if table.replicas > 1 and not table.leader_elect:
        message = "several replicas need the Lease: remove leaderElect, or have one replica"
        findings.mistake("conflict", message, table.key_sites["leaderElect"])
    if table.rules_image is not None and table.rules == "image":
        message = "`rulesImage` is mounted on the generic image: remove it, or `rules: image`"
        findings.mistake("conflict", message, table.key_sites["rulesImage"])
    for other in [each for each in ("replicas", "leaderElect", "selector") if each in table.key_sites]:
        if table.shards:
            message = f"`{other}` is for an operator without shards, of which one pod works: remove it, or `shards`"
            findings.mistake("conflict", message, table.key_sites[other])
    if table.selector is not None:
        try:
            label_requirements(table.selector.text)
        except ValueError as error:
            findings.mistake("wrong-value", f"not a label selector: {error}", table.key_sites["selector"])
    for each in table.env:
        if meant := _KEYS_OF_VARIABLES.get(each.name):
            message = f'the roles do not depend on the variable {each.name}: use the key "{meant}"'
            findings.mistake("conflict", message, each.site)


def settings(loaded: Loaded, choices: Choices) -> dict[str, str | None]:
    """The variables of the operator: those of the choices, and all that the rules read. One that the rules read without
    a default is None if the choices do not have it."""
    return dict(sorted({**loaded.variables, **choices.env}.items()))


def misspelt_variables(loaded: Loaded, choices: Choices) -> tuple[Finding, ...]:
    """Warnings of variables that are like one that the rules read."""
    findings = Findings({})
    for name in choices.env.keys() - loaded.variables.keys():
        if meant := did_you_mean_quoted(name, loaded.variables):
            findings.warning(
                "unknown-key", f'the rules do not read the variable "{name}"{meant}', choices.env_sites[name]
            )
    return findings.sorted()


def choices_schema() -> dict[str, JSON]:
    """The JSON Schema of the file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"choices for the operator of a ruleop project ({FILE})",
        **table_schema(ChoicesTable),
        "$defs": {table.DEFINITION: table_schema(table) for table in TABLES},
    }


def _choices(table: ChoicesTable) -> Choices:
    return Choices(
        name=table.name.text,
        namespace=table.namespace.text,
        namespaces=tuple(dict.fromkeys(each.text for each in table.namespaces)),
        image=table.image.text if table.image is not None else GENERIC_IMAGE,
        version=table.version.text,
        rules=table.rules,
        rules_image=table.rules_image.text if table.rules_image is not None else "",
        replicas=table.replicas,
        leader_elect=table.leader_elect,
        shards=table.shards,
        selector=table.selector.text if table.selector is not None else "",
        env={each.name: each.value.text for each in table.env if each.value is not None},
        metrics_auth=table.metrics_auth,
        env_sites={each.name: each.site for each in table.env},
        about=about(table.about) if table.about is not None else About(),
    )
