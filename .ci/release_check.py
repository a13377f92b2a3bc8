"""What must hold before a release: built, installed on every Python that is found, tried out, and looked through.

`make release-check` runs it for all packages of the street. The wheels, and the sdists, are installed together into an
empty environment; the core alone is installed and tried first; the demo is run from the wheels on the first Python;
metadata, the files in the wheels and the licences of all dependencies are checked. A Python that a dependency has no
wheel for (PyTorch's come months after a new Python) is named and left out, but not the first. On that one training is
timed beside the last tag.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STREET = ("dissensus", "dissensus-train", "dissensus-collect", "dissensus-papers")
"""The packages, the core first."""

OLDEST = (3, 11)
ALLOWED = r"MIT|BSD|Apache|Python Software Foundation|PSF|MPL|Mozilla|ISC|HPND|Unlicense|Zlib|CC0|Public Domain|0BSD"
REFUSED = r"\bA?GPL|GNU (Affero )?General Public"
NVIDIA = r"nvidia-|cuda-"
"""What PyTorch's wheel for GPUs brings, under NVIDIA's own licence; PyTorch without it works, too."""

LISTED = """
import json
from importlib import metadata

def licence(each):
    meta = each.metadata
    kinds = [each.split("::")[-1] for each in meta.get_all("Classifier") or [] if "License" in each]
    named = "; ".join(filter(None, [meta.get("License-Expression"), *kinds]))
    return named or (meta.get("License") or "").split("\\n")[0]

print(json.dumps({each.metadata["Name"]: licence(each) for each in metadata.distributions()}))
"""


WITHOUT_TORCH = """
import importlib.util

import dissensus.report.writing, dissensus.planning, dissensus.cli.evaluate

assert importlib.util.find_spec("torch") is None, "the core brings PyTorch"
"""


def main() -> None:
    """Check everything, and end at the first thing that does not hold."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        wheels, sdists = built(folder / "dist")
        versions = {name: check_metadata(name, wheels[name], sdists[name]) for name in STREET}
        refuse_unless(len({*versions.values()}) == 1, f"packages of different versions: {versions}")
        version = versions["dissensus"]
        for name in STREET:
            sizes = f"wheel {wheels[name].stat().st_size:,} bytes, sdist {sdists[name].stat().st_size:,} bytes"
            print(f"{name} {version}: {sizes}")
        left_out = []
        for place, (name, python) in enumerate(pythons().items()):
            for kind, packages in (("wheel", wheels), ("sdist", sdists)):
                first = place == 0 and packages is wheels
                inside = folder / "environment"
                lacking = install(inside, python, packages)
                if lacking is None:
                    try_out(inside, version, folder, demo=first)
                    if first:
                        compare_speed(inside)
                    print(f"Python {name}: the {kind} installs and runs{', demo too' if first else ''}", flush=True)
                    if first:
                        check_licences(inside)
                else:
                    refuse_unless(place > 0, f"Python {name}: pip finds no {lacking} for it")
                    print(f"Python {name}: the {kind} was not tried, as pip finds no {lacking} for it", flush=True)
                    left_out.append(name)
                shutil.rmtree(inside)
    without = f", but not tried on Python {' and '.join(dict.fromkeys(left_out))}" if left_out else ""
    print(f"ready to publish{without}")


def compare_speed(inside: Path) -> None:
    """Print what training takes beside the last tag, on this machine; something far slower is refused."""
    asked = [str(inside / "bin/python"), str(ROOT / "benchmarks" / "since_tag.py")]
    refuse_unless(subprocess.run(asked, check=False).returncode == 0, "training became slower")


def built(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """By package, the wheels, and the sdists that they were made from."""
    for name in STREET:
        run(sys.executable, "-m", "build", "--outdir", folder / name, ROOT / "packages" / name)
    wheels = {name: next((folder / name).glob("*.whl")) for name in STREET}
    return wheels, {name: next((folder / name).glob("*.tar.gz")) for name in STREET}


def check_metadata(package: str, wheel: Path, sdist: Path) -> str:
    """The version; the wheel must hold every file of the package, and both must say the same of themselves."""
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(file.read(place).decode())
    with tarfile.open(sdist) as file:
        about = file.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert about is not None
        source = Parser().parsestr(about.read().decode())
    for key in ("Name", "Version", "Requires-Python", "License-Expression", "Summary"):
        refuse_unless(
            told[key] and told[key] == source[key], f"{key}: {told[key]!r} in the wheel, {source[key]!r} in the sdist"
        )
    loose = [each for each in told.get_all("Requires-Dist") or () if each.startswith("dissensus") and "==" not in each]
    refuse_unless("dev" in told["Version"] or not loose, f"{package}: not in lockstep: {loose}")
    refuse_unless(told["License-Expression"] == "Apache-2.0", f"licence {told['License-Expression']}")
    refuse_unless(len(told.get_payload()) > 200, f"{package}: the README is not in the metadata")
    refuse_unless(any(name.endswith("licenses/LICENSE") for name in names), "no LICENSE in the wheel")
    home = f"packages/{package}/src/"
    listed = subprocess.run(["git", "ls-files", home], cwd=ROOT, capture_output=True, text=True, check=True)
    missing = {line.removeprefix(home) for line in listed.stdout.splitlines()} - names
    refuse_unless(not missing, f"{package}: not in the wheel: {sorted(missing)}")
    return str(told["Version"])


def pythons() -> dict[str, str]:
    """Every Python from `OLDEST` on that starts, by its version; the one that runs this comes first."""
    found = {sys.version_info[:2]: sys.executable}
    candidates = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], 30)]
    candidates += [str(path) for path in sorted(Path.home().glob(".pyenv/versions/*/bin/python3"))]
    for path in filter(None, candidates):
        asked = [path, "-c", "import sys, venv; print(*sys.version_info[:2])"]
        said = subprocess.run(asked, capture_output=True, text=True, check=False)
        if said.returncode == 0:
            major, minor = map(int, said.stdout.split())
            if (major, minor) >= OLDEST:
                found.setdefault((major, minor), path)
    return {f"{major}.{minor}": path for (major, minor), path in found.items()}


def install(inside: Path, python: str, packages: dict[str, Path]) -> str | None:
    """Make an environment with the packages, what they need and the demo's data; returns what pip cannot find.

    The core comes first and by itself: it must import, and without PyTorch.
    """
    run(python, "-m", "venv", inside)
    pip = [str(inside / "bin/python"), "-m", "pip"]
    asked = [*pip, "install", "-q", "-c", str(ROOT / "constraints.txt")]
    core = subprocess.run([*asked, str(packages["dissensus"])], cwd=ROOT, capture_output=True, text=True, check=False)
    if core.returncode == 0:
        run(inside / "bin/python", "-c", WITHOUT_TORCH)
    asked += [*map(str, packages.values()), f"{packages['dissensus']}[demo]"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    lacking = not_found(done.stderr) if done.returncode else None
    if lacking is None:
        refuse_unless(done.returncode == 0, f"{' '.join(asked)} failed\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        run(*pip, "check")
    return lacking


def not_found(said: str) -> str | None:
    """The requirement for which pip says that it finds no distribution."""
    found = re.search(r"^ERROR: No matching distribution found for (\S+)", said, re.MULTILINE)
    return None if found is None else found[1]


def try_out(inside: Path, version: str, folder: Path, *, demo: bool) -> None:
    """Imports, the version, a study by name, and the demo where it is asked for; away from the repository."""
    said = run(inside / "bin/python", "-c", "import dissensus; print(dissensus.__version__)", cwd=folder).strip()
    refuse_unless(said == version, f"dissensus.__version__ is {said}, built was {version}")
    run(inside / "bin/dissensus", "study", "show", "words", cwd=folder)
    run(inside / "bin/dissensus", "collect", "--help", cwd=folder)
    run(inside / "bin/dissensus", "bench", "--help", cwd=folder)
    if demo:
        run(inside / "bin/dissensus", "demo", cwd=folder)


def check_licences(inside: Path) -> None:
    """Every dependency must state a licence that lets it be used beside ours."""
    stated: dict[str, str] = json.loads(run(inside / "bin/python", "-c", LISTED))
    runtime = {name for name in stated if re.match(NVIDIA, name)}
    wrong = {
        name: licence
        for name, licence in sorted(stated.items())
        if name not in runtime and (re.search(REFUSED, licence) or not re.search(ALLOWED, licence))
    }
    refuse_unless(not wrong, f"licences to look at: {wrong}")
    others = len(stated) - len(runtime)
    print(f"{others} packages that may be used by their licences, and {len(runtime)} of NVIDIA's runtime")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; it must end well."""
    done = subprocess.run([str(each) for each in command], cwd=cwd, capture_output=True, text=True, check=False)
    refuse_unless(
        done.returncode == 0, f"{' '.join(map(str, command))} failed\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    return done.stdout


def refuse_unless(holds: object, what: str) -> None:
    """Ends with what does not hold."""
    if not holds:
        raise SystemExit(f"release check: {what}")


if __name__ == "__main__":
    main()
