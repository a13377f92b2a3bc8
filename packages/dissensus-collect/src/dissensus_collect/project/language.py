"""The language of the annotator's pages.

The English sentence is its own name. Write it where it is said, `{{ say("Try it out") }}` in a template, `say("Saved")`
in a script (from words.js) or `language.say("Saved")` in Python, and add its translations to every file of languages/,
below [pages] (templates and Python) or [scripts] (what browsers get). Values are named in braces,
`say("{n} of {most}", n=3, most=9)`. A sentence that depends on a number calls it `n` and is written in every file, the
English one included, as a table of the plural forms that the language has:

    ["{n} classes left"] (below [scripts]: [scripts."{n} classes left"])
    one = "1 class left"
    other = "{n} classes left"

The tests of this room fail if a sentence has no translation, a translation no sentence, a plural form or a value is
missing, or a template or script says something without `say`. Numbers are written in the digits 0 to 9 in all
languages, since classes may be digits.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup, escape

from dissensus.shipped import shipped_toml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from babel import Locale

NAMES: Final = {"en": "English", "de": "Deutsch", "fr": "Français", "es": "Español", "ar": "العربية"}
"""The languages of the interface by code, each under the name that its speakers give it."""


@dataclass(frozen=True)
class Language:
    """A language of the interface.

    Attributes:
        code: as in HTML's `lang`.
        pages: by English sentence, what templates and Python say, or its plural forms.
        scripts: the same, for scripts.
        new: what is written into a new project.
    """

    code: str
    pages: Mapping[str, str | Mapping[str, str]]
    scripts: Mapping[str, str | Mapping[str, str]]
    new: Mapping[str, Any]

    @functools.cached_property
    def locale(self) -> Locale:
        """What the Unicode CLDR knows of it; imported here, as projects are also read where nothing is served."""
        from babel import Locale

        return Locale(self.code)

    @property
    def direction(self) -> str:
        """As in HTML's `dir`."""
        return self.locale.text_direction

    def say(self, sentence: str, **values: Any) -> str:
        """A sentence in this language, as plain text."""
        return self.told(sentence, **values).format(**values)

    def marked(self, sentence: str, **values: Any) -> Markup:
        """The same for a template, where a value may be markup; everything else is escaped."""
        return Markup(escape(self.told(sentence, **values))).format(**values)

    def told(self, sentence: str, **values: Any) -> str:
        """A sentence before its values are put in; as it is, if it is not one of ours, and then with its own braces."""
        # What has no translation is said in English: an annotator is better served by it than by an error.
        text = self.pages.get(sentence, sentence)
        if isinstance(text, str):
            return text
        return text.get(self.locale.plural_form(values["n"])) or text["other"]


@functools.cache
def language(code: str) -> Language:
    """The language of a code, one of `NAMES`."""
    catalogue = shipped_toml(__package__, "languages", f"{code}.toml")
    return Language(code, catalogue["pages"], catalogue["scripts"], catalogue["new"])


def preferred(offered: Sequence[str], *, chosen: str | None, accepted: str) -> str:
    """The language for a visitor: the one `chosen` before, or else what their browser accepts (Accept-Language).

    Of the codes that are offered, the first is for everybody else.
    """
    if chosen in offered:
        return str(chosen)
    wanted = []
    for place, part in enumerate(accepted.split(",")[:20]):
        match = re.fullmatch(r"\s*([a-zA-Z]{2,3})(?:-[\w-]*)?\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*)?", part)
        if match is not None and match[1].lower() in offered and float(match[2] or 1) > 0:
            wanted.append((-float(match[2] or 1), place, match[1].lower()))
    return min(wanted)[2] if wanted else offered[0]
