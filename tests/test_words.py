"""What people read is in the words of the field: messages, help, reports; `docs/test_pages.py` looks at the pages."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
SAY = {
    r"\b(votes|judgements|annotators|nats|seconds|cents|row) an? (item|text|vote)\b(?!'| wants)": "per item",
    r"freed of chance": "Krippendorff's alpha",
    r"seed of everything": "random seed",
    r"\b(is|are|be) (not )?told (apart|from another)": "significantly better, no significant difference",
    r"\bthe house\b": "architecture overview",
    r"about these people": "annotators treated as fixed",
    r"fewer than 0 people": "worse than the marginal",
    r"condemns? nobody": "no annotator has 20 shared items; ranking skipped",
    r"(?<![-+] )(?<![\d.,])1 (votes|items|people|judgements|annotators|seeds|minutes|runs)\b": "the singular",
}
"""Words that a newcomer stumbles over, and what the field says in their place."""


def strings(value: Any) -> Iterator[str]:
    """The texts in what a TOML file holds."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(inner)


def sentences(path: Path) -> Iterator[str]:
    """What a file lets people read: in Python, every text but names and docstrings; in TOML, the values; else all."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        yield from strings(tomllib.loads(text))
    elif path.suffix != ".py":
        yield text
    else:
        tree = ast.parse(text)
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
                yield node.value


READ = [
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md")),
    *(
        path
        for path in sorted(ROOT.glob("packages/*/src/**/*"))
        if path.suffix in (".py", ".toml", ".jinja", ".js", ".md")
    ),
]


def test_the_words_of_the_field_are_said() -> None:
    texts = [(path, " ".join(text.split())) for path in READ for text in sentences(path) if " " in text]
    found = [
        f"{path.relative_to(ROOT)}: '{match.group()}'; say: {instead}"
        for stumbled_over, instead in SAY.items()
        for path, text in texts
        for match in re.finditer(stumbled_over, text)
    ]
    assert not found, "\n".join(found)


def test_old_words_are_found() -> None:
    """The patterns find what they forbid, and let pass what is no unit."""
    said = "5 votes an item are told apart, a seed of everything, 1 votes"
    assert sum(bool(re.search(pattern, said)) for pattern in SAY) == 4
    assert not any(re.search(pattern, "with 5 votes an item's gain, 21 votes, per item") for pattern in SAY)
