"""What a reader searches for leads to the right page: a part of `make docs`, after the site is built.

`python -m tests.docs.search` asks the site's own index as the theme's script does: the same fields and boosts, words
with any ending, more for a page than for its sections, and for all words than for some. `tests.docs.site` asks the
script itself, in a browser.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

FIRST = {
    "multipass": "start/glossary",
    "soft labels": "guides/labels",
    "pandas": "votes",
    "Krippendorff": "votes",
    "annotator": "people",
    "slider": "start/file-not-read",
    "RLHF": "preferences",
    "conformal": "together",
}
"""What people search for, and the page that must come first."""


def first_pages(site: Path, searches: list[str]) -> dict[str, str]:
    """The page that each search shows first."""
    from lunr.builder import Builder
    from lunr.stop_word_filter import stop_word_filter
    from lunr.trimmer import trimmer

    builder = Builder()
    builder.ref("location")
    builder.field("title", boost=1000)
    builder.field("text")
    builder.pipeline.add(trimmer, stop_word_filter)
    for each in json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]:
        builder.add({**each, "text": re.sub("<[^>]*>", " ", each["text"])}, {"boost": each.get("boost", 1)})
    index = builder.build()
    found = {}
    for words in searches:
        terms = words.lower().split()
        score = {}
        for each in index.search(" ".join(f"{term}*" for term in terms)):
            held = sum(any(key.startswith(term) for key in each["match_data"].metadata) for term in terms)
            score[each["ref"]] = each["score"] * (1 + (("#" not in each["ref"]) + held / len(terms)) ** 2)
        found[words] = max(score, key=score.__getitem__).partition(".html")[0]
    return found


def main(site: Path) -> None:
    """Say which searches lead elsewhere."""
    found = first_pages(site, list(FIRST))
    wrong = [f"'{word}' leads to {found[word]}, not to {page}" for word, page in FIRST.items() if found[word] != page]
    print("\n".join(wrong) or f"{len(FIRST)} searches lead to the right page")
    raise SystemExit(int(bool(wrong)))


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else "site").resolve())
