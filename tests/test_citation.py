"""What is printed to be cited: entries that BibTeX takes without a warning, and the same words in CITATION.cff."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "misc": {"author", "title", "year", "howpublished", "note"},
}
"""By kind of entry, the fields without which BibTeX warns, or a reader could not find what is meant."""


def entries() -> dict[str, tuple[str, dict[str, str]]]:
    """By key, the kind and the fields of the entries of references.bib."""
    text = (ROOT / "packages/dissensus/src/dissensus/report/references.bib").read_text(encoding="ascii")
    made = {}
    for entry in text.strip().split("\n\n"):
        kind, key = re.match(r"@(\w+)\{(\w+),\n", entry).groups()  # type: ignore[union-attr]
        fields = dict(re.findall(r"^  (\w+) = \{(.*)\},?$", entry, re.MULTILINE))
        assert len(fields) == entry.count(" = {"), key
        assert entry.count("{") == entry.count("}"), key
        assert not re.search(r"(?<!\\)[&%#]", entry), key
        made[key] = (kind, fields)
    return made


def test_every_entry_has_what_bibtex_asks_for() -> None:
    for key, (kind, fields) in entries().items():
        assert fields.keys() >= NEEDED[kind], key
        assert re.fullmatch(r"\d{4}", fields["year"]), key


def test_the_citation_file_says_the_same() -> None:
    _, own = entries()["dissensus"]
    stated = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    title = re.search(r'^title: "(.*)"$', stated, re.MULTILINE)
    authors = re.findall(r"^  - name: (.*)$", stated, re.MULTILINE)
    licence = re.search(r"^license: (.*)$", stated, re.MULTILINE)
    assert title is not None
    assert licence is not None
    plain = {name: re.sub(r"[{}]", "", text) for name, text in own.items()}
    assert plain["title"] == title[1]
    assert plain["author"] == " and ".join(authors)
    assert licence[1] in plain["howpublished"]
    assert plain["note"] == "Version VERSION"
    page = (ROOT / "docs/about/cite.md").read_text(encoding="utf-8")
    entry = re.search(r"```bibtex\n(.*?)\n```", page, re.DOTALL)
    assert entry is not None
    assert entry[1] in (ROOT / "packages/dissensus/src/dissensus/report/references.bib").read_text(encoding="utf-8")
