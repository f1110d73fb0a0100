"""The description of an operator in a catalogue, from `about` of `ruleop.yaml`."""

# ruff: noqa: RUF009 - `key` returns a field, as dataclasses.field does

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from ruleop.core.rules.language.tables import Table, TableOf, key
from ruleop.core.rules.language.value_types import ListOf, Text, Word

if TYPE_CHECKING:
    from ruleop.core.errors import Site

LINE: Final = Text(r"[^\s](.*[^\s])?", "one line of text")
ANY_TEXT: Final = Text(r"(?s:.*\S.*)", "text that is not empty")
URL: Final = Text(r"https?://[^\s]+", "an address such as https://example.com")
EMAIL: Final = Text(r"[^\s@]+@[^\s@]+\.[^\s@]+", "an e-mail address")
ICON: Final = Text(r"[^\n]+\.(?:svg|png|jpg|gif)", "a file that ends in .svg, .png, .jpg or .gif")


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
