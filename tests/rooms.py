"""Rooms of the packages, and the room that a file belongs to."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOM_OF_TESTS = {"study_report": "report"}
"""Folders of tests whose room has another name."""


def room_of(path: Path, root: Path = ROOT) -> str:
    """Return the room that a file of src or of the tests belongs to.

    Tests of a folder that has no room of its name count for the package itself, those at the root for `tests`.
    """
    parts = path.relative_to(root).parts
    if parts[0] != "packages":
        return "/".join(parts[:-1][:2])
    package = parts[1].replace("-", "_")
    folders = parts[4:-1] if parts[2] == "src" else parts[3:-1]
    name = ROOM_OF_TESTS.get(folders[0], folders[0]) if folders else ""
    is_room = parts[2] == "src" or (root / "packages" / parts[1] / "src" / package / name).is_dir()
    return f"{package}/{name}" if name and is_room else package
