"""What this package needs: a release asks for the others of the street in its own version alone.

Hatchling calls it (`[tool.hatch.metadata.hooks.custom]`). Every package has the same file, which its sdist carries.
Between releases no version is asked for: in a clone, each commit would be another one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Lockstep(MetadataHookInterface):
    """Makes `dependencies` and `optional-dependencies` from the hook's own tables, and `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put them in."""
        version = metadata["version"]

        def asked(each: str) -> str:
            return f"{each}=={version}" if each.startswith("dissensus") and "dev" not in version else each

        metadata["dependencies"] = [asked(each) for each in self.config["dependencies"]]
        extras = self.config.get("optional-dependencies", {})
        metadata["optional-dependencies"] = {name: [asked(each) for each in needs] for name, needs in extras.items()}
        # The core's is that of the repository; its sdist has it beside this file.
        places = (Path(self.root, "README.md"), Path(self.root).parents[1] / "README.md")
        text = next(place for place in places if place.is_file()).read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
