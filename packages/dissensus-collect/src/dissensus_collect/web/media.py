"""The pictures of items, under names that only the browser they were handed to can use."""

from __future__ import annotations

import io
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from starlette.responses import FileResponse, Response

from dissensus_collect.web.security import keyed_name

if TYPE_CHECKING:
    from pathlib import Path

TYPES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
"""What is sent as it is; TIFF, which browsers do not show, is sent as PNG."""

HEADERS: Final = {
    "Cache-Control": "private, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Content-Disposition": "inline",
}


@dataclass
class Offered:
    """Which names lead to which files, and whose they are.

    A name is a keyed hash of the session and the item, so it reveals nothing about the file, nobody can guess somebody
    else's, and it stays the same when the server restarts. Names are held in memory; one that was forgotten is handed
    out again with the item it belongs to.
    """

    kept: int = 500_000
    _files: OrderedDict[str, tuple[str, str]] = field(default_factory=OrderedDict)

    def offer(self, session: str, media: str) -> str:
        """The address under which ``session`` may fetch a file of the folder of images."""
        name = keyed_name(session, f"media {media}")
        self._files[name] = (keyed_name(session, "owner"), media)
        self._files.move_to_end(name)
        while len(self._files) > self.kept:
            self._files.popitem(last=False)
        return f"/media/{name}"

    def file(self, name: str, sessions: tuple[str, ...]) -> str | None:
        """The file behind a name, or None if it was not handed to any of these sessions."""
        owner, media = self._files.get(name, ("", ""))
        return media if any(owner == keyed_name(session, "owner") for session in sessions) else None


def inside(folder: Path, name: str) -> Path | None:
    """The file of that name, or None if it is not a file or lies outside the folder, be it by a link or by dots."""
    root = folder.resolve()
    try:
        path = (root / name).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        return None
    return path if path.is_relative_to(root) and path.is_file() else None


def picture(path: Path) -> Response | None:
    """A file as it is sent to a browser, or None if it is not of a kind that is shown."""
    kind = TYPES.get(path.suffix.lower())
    if kind is not None:
        return FileResponse(path, media_type=kind, headers=HEADERS)
    if path.suffix.lower() not in (".tif", ".tiff"):
        return None
    from PIL import Image

    with Image.open(path) as image:
        drawn = io.BytesIO()
        image.convert("RGBA" if "A" in image.getbands() else "RGB").save(drawn, "PNG")
    return Response(drawn.getvalue(), media_type="image/png", headers=HEADERS)
