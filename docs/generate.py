"""The pages of the site that are made when it is built: the reference from the code, the tutorials by running them.

MkDocs calls `on_config` and `on_files` (mkdocs.yml, hooks). Nothing that is made here is committed.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import inspect
import json
import os
import re
import shutil
import tomllib
from functools import cache, partial
from html import escape, unescape
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PACKAGES = ROOT / "packages"
BUILD = ROOT / "build" / "docs"
"""Where tutorials are run, and what came out is kept until they or the package change."""

REMOTE = "https://unpkg.com/iframe-worker/shim"

NOTEBOOKS = ("tutorials", "gallery")
"""The folders whose .py files are notebooks (jupytext, percent format)."""


def on_config(config: Any) -> Any:
    """One page of the API for each room, below the public names."""
    pages = [{"dissensus": "reference/api/dissensus.md"}, *({name: f"reference/api/{page(name)}"} for name in rooms())]
    next(part["Reference"] for part in config.nav if "Reference" in part)[-1]["API"] = pages
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds what is made. Live pages of results would be in the way of Markdown pages of the same name: they are moved."""
    from mkdocs.structure.files import File

    made: dict[str, str | bytes] = {
        **{f"gallery/results/{path.name}": path.read_bytes() for path in (DOCS / "results").glob("*.html")},
        "start/glossary.md": glossary_page(),
        "reference/cli.md": command_page(),
        "reference/metrics.md": metrics_page(),
        **schema_pages(),
        **api_pages(),
    }
    for folder in NOTEBOOKS:
        for path in sorted((DOCS / folder).glob("*.py")):
            made |= notebook_page(path)
    for place, content in made.items():
        files.append(File.generated(config, place, content=content))
    LIVE.update(place for place in made if place.startswith("gallery/"))
    return files


LIVE: set[str] = set()
"""Live pages that this build made; a notebook whose data cannot be had writes none."""


BOOST = {
    **dict.fromkeys(("results", "measured.md", "bench", "papers.md", "basins.md", "gallery.md"), 0.01),
    "reference/": 0.2,
    "about/": 0.5,
    "tutorials/": 0.5,
    "start/glossary.md": 5,
}
"""Who searches for a word wants to know what it means, and last of all the long tables in which it stands."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """What follows a block of code on the next line is a paragraph too; Markdown asks for an empty line before it."""
    for begins, boost in BOOST.items():
        if page.file.src_uri.startswith(begins):
            page.meta["search"] = {"boost": boost}
    markdown = re.sub(r"\[([^\]]+)\]\((?:\.\./)*(gallery/[^)]+\.html)\)", linked, markdown)
    shown = re.sub(r"^```math\n(.*?)^```\n", lambda found: f"\n{formula(found[1])}\n\n", markdown, flags=re.M | re.S)
    return re.sub(r"^```\n(?=.)", "```\n\n", shown, flags=re.M)


def linked(link: re.Match[str]) -> str:
    """A link to a live page, or, where this build did not make it, its words."""
    return link[0] if link[2] in LIVE else f"{link[1]} (not made here: its data were not at hand)"


def formula(latex: str) -> str:
    """A formula on a line of its own, as MathML, which browsers draw without a script."""
    from latex2mathml.converter import convert

    return f'<div class="formula" tabindex="0">{convert(" ".join(latex.split()), display="block")}</div>'


def on_page_content(html: str, **_: Any) -> str:
    """The head of a column without a title is no head; code between dollar signs is a formula."""
    from latex2mathml.converter import convert

    html = re.sub(r"<code>\$([^<]+)\$</code>", lambda found: convert(unescape(found[1])), html)
    return re.sub(r"<th([^>]*)></th>", r"<td\1></td>", html)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Search from disk needs a script that the offline plugin would fetch from a server; ours lies beside the pages."""
    return output.replace(REMOTE, "../" * page.url.count("/") + "assets/worker.js")


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """The same for 404.html."""
    return output_content.replace(REMOTE, "assets/worker.js")


@cache
def rooms() -> dict[str, list[str]]:
    """Everything that is public, by module: what rooms export, and what other modules have in `__all__`.

    The latter are for those who write a package that joins in: the ground floor, and what commands are made of.
    `dissensus_collect` is one room; what `dis` itself gives (`plot`) is on the page of its names.
    """
    found = {}
    folders = [path.parent for path in PACKAGES.glob("*/src/*/*/__init__.py") if path.parent.name != "cli"]
    modules = [f"{folder.parent.name}.{folder.name}" for folder in folders]
    for module in [*modules, "dissensus_collect"]:
        room = importlib.import_module(module)
        found[module] = [name for name in dir(room) if not name.startswith("_")] if hasattr(room, "__getattr__") else []
    for path in (*PACKAGES.glob("*/src/*/[!_]*.py"), *PACKAGES.glob("*/src/*/cli/[!_]*.py")):
        if path.stem != "plot" and "\n__all__ = " in path.read_text(encoding="utf-8"):
            module = path.with_suffix("").as_posix().rpartition("/src/")[2].replace("/", ".")
            found[module] = importlib.import_module(module).__all__
    return {module: sorted(names, key=str.casefold) for module, names in sorted(found.items()) if names}


def page(room: str) -> str:
    """The page of a room: `studies.md` of `dissensus_train.studies`, `collect.md` of `dissensus_collect`."""
    return f"{room.rpartition('.')[2].removeprefix('dissensus_')}.md"


def api_pages() -> dict[str, str | bytes]:
    """The API as mkdocstrings renders it: what each room exports, and the public names with a link to their room."""
    made: dict[str, str | bytes] = {
        f"reference/api/{page(room)}": api_page(room, names) for room, names in rooms().items()
    }
    made["reference/api/dissensus.md"] = public_page()
    return made


def public_page() -> str:
    """The names that `import dissensus as dis` gives, each with its first line and a link to where it is described."""
    import dissensus

    lines = ["# dissensus", "", "What `import dissensus as dis` gives. Each name is loaded when it is first used.", ""]
    lines += ["| name | what it is |", "|---|---|"]
    rest = []
    for name in (name for name in dissensus.__all__ if not name.startswith("__")):
        value = getattr(dissensus, name)
        home = next((room for room in rooms() if value is exported(room, name)), None)
        if inspect.ismodule(value) and value.__name__ in rooms():
            target = page(value.__name__)
        elif home is not None:
            target = f"{page(home)}#{value.__module__}.{value.__name__}"
        else:
            target = f"#{identifier('dissensus', name)}"
            rest += [f"::: {identifier('dissensus', name)}", ""]
        lines.append(f"| [`{name}`]({target}) | {cell((inspect.getdoc(value) or '').splitlines()[0])} |")
    return "\n".join([*lines, "", *rest])


def exported(room: str, name: str) -> Any:
    """What a room exports under a name, or nothing."""
    return getattr(importlib.import_module(room), name) if name in rooms()[room] else None


def api_page(module: str, names: list[str]) -> str:
    """A module's exports, each from the module where it is written."""
    about = (inspect.getdoc(importlib.import_module(module)) or "").split("\n\n")[0]
    lines = [f"# {module}", "", about, ""]
    for name in names:
        lines += [f"::: {identifier(module, name)}", ""]
    return "\n".join(lines)


def identifier(module: str, name: str) -> str:
    """The full name of what a module exports: of a module its own, and else where it is written."""
    value = getattr(importlib.import_module(module), name)
    if inspect.ismodule(value):
        return value.__name__
    home = getattr(value, "__module__", None)
    if not (isinstance(home, str) and home.startswith("dissensus")):
        return f"{assigned_in(module, name)}.{name}"
    return f"{home}.{getattr(value, '__name__', name) if callable(value) else name}"


def assigned_in(module: str, name: str) -> str:
    """The module that a constant is assigned in, as the room's imports for type checkers say."""
    text = Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8")
    found = re.search(rf"from (\S+) import (?:\(\s*)?{name} as {name}", text)
    return found[1] if found else module


def command_page() -> str:
    """Every command with its arguments and options, from what `--help` prints."""
    import typer

    from dissensus.cli import app

    lines = ["# Command line", "", "What `dissensus COMMAND --help` prints, in one place.", ""]

    def walk(command: Any, context: Any, depth: int) -> None:
        inside = getattr(command, "commands", {})
        if depth:
            words = plain(command.help or "")
            usage = " ".join(command.collect_usage_pieces(context))
            lines.extend([f"{'#' * min(depth + 1, 4)} {context.command_path}", "", words, ""])
            lines.extend(["```text", f"{context.command_path} {usage}", "```", ""])
            for each in command.params:
                each.hidden = False  # the page of --help-all
            rows = [each.get_help_record(context) for each in command.params if "--help" not in each.opts]
            if any(rows):
                lines.extend(["| argument or option | what it does |", "|---|---|"])
                lines.extend(f"| {code(row[0])} | {cell(plain(row[1]))} |" for row in rows if row)
                lines.append("")
        for name, child in inside.items():
            walk(child, type(context)(child, info_name=name, parent=context), depth + 1)

    root = typer.main.get_command(app)
    walk(root, root.context_class(root, info_name="dissensus"), 0)
    return "\n".join(lines)


def plain(text: str) -> str:
    """A help text on one line for each of its paragraphs."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).replace("\b", "").split("\n\n"))


def code(text: str) -> str:
    """Code inside a table's cell."""
    return f"<code>{escape(text).replace('|', '&#124;')}</code>"


def cell(text: str) -> str:
    """Prose inside a table's cell; text in backticks stays code."""
    parts = re.split(r"`([^`]+)`", text.replace("\n\n", " "))
    return "".join(code(each) if place % 2 else escaped(each) for place, each in enumerate(parts))


def escaped(text: str) -> str:
    """Text of which Markdown reads nothing but the words."""
    return re.sub(r"([*_\[\]])", r"\\\1", escape(text, quote=False)).replace("|", "&#124;")


def glossary_page() -> str:
    """The vocabulary, the words of the report, and deliveries and schemes in a line each."""
    from dissensus.labels.labelling import SCHEMES
    from dissensus.report.glossary import delivery_in_words, paragraph, terms
    from dissensus_train.delivery.named import DELIVERIES

    parts = {
        "The vocabulary": VOCABULARY,
        "Words of the report": {name: text for part in terms().values() for name, text in part.items()},
        "Deliveries": {name: f"{delivery_in_words(paragraph(each))}." for name, each in DELIVERIES.items()},
        "Schemes, from votes to label distributions": {name: f"{each.what}." for name, each in SCHEMES.items()},
    }
    lines = ["# Glossary", ""]
    for title, words in parts.items():
        lines += [f"## {title}", ""]
        for name, text in words.items():
            lines += [name, f":   {escaped(text[:1].upper() + text[1:])}", ""]
    return "\n".join(lines)


VOCABULARY = {
    "item": "what people judged: a text, a pair of texts, an image, or a row of features.",
    "annotator": "somebody who judged items. A set may hold their names, or only how many they were.",
    "response": "what was answered to one class of one item: yes, no or unsure.",
    "judgement": "everything that one annotator said of one item.",
    "vote": "one class that one annotator chose for one item.",
    "label distribution": "for each item a share for each class; the shares sum to 1.",
    "target": "the label distributions that a model is trained towards.",
    "delivery": "how labels become training targets, epoch by epoch: soft labels, label sampling, majority labels.",
    "run": "one model trained once: a target, a delivery, a network and a seed.",
    "study": "a grid of runs on one set of votes, written down in a small TOML file.",
    "store": "the folder in which finished runs are kept; none is trained twice.",
    "bundle": "a trained model as a folder that predicts anywhere, without the votes.",
    "collection project": "items, classes and rules with which votes are collected on the web, in a TOML file.",
    "out-of-distribution": "said of items that are unlike those a model was trained on.",
}


def metrics_page() -> str:
    """A card for each metric: facts from the registry, and what only a person can say from metric_notes.toml."""
    from dissensus.evaluation.metrics.registry import METRICS

    notes = tomllib.loads((DOCS / "reference" / "metric_notes.toml").read_text(encoding="utf-8"))
    side = {"lower": "lower is closer to people", "higher": "higher is closer to people", "zero": "0 is best"}
    lines = ["# Metrics", "", notes["about"], ""]
    lines += ["| metric | unit | range | best |", "|---|---|---|---|"]
    for name, metric in METRICS.items():
        span = f"{bound(metric.low)} to {bound(metric.high)}"
        lines.append(f"| [{escaped(metric.title)}](#{name}) | {metric.unit} | {span} | {side[metric.better]} |")
    for name, metric in METRICS.items():
        function = metric.per_item or metric.over_items
        paragraphs = [" ".join(part.split()) for part in (inspect.getdoc(bare(function)) or "").split("\n\n")]
        said = [part for part in paragraphs if not part.startswith(("Args:", "Returns:"))]
        if isinstance(function, partial):
            given = ", ".join(f"{key} = {value!r}" for key, value in function.keywords.items())
            said.append(f"Here with `{given}`.")
        needs = f"; needs {', '.join(metric.needs)}" if metric.needs else ""
        lines += ["", f"## {escaped(metric.title)} {{ #{name} }}", ""]
        lines += [f"| name | `{name}`{needs} |", "|---|---|", f"| what it is | {cell(' '.join(said))} |"]
        lines += [f"| range | {bound(metric.low)} to {bound(metric.high)} {metric.unit}; {side[metric.better]} |"]
        lines += [f"| reference | {escaped(metric.reference)} |"]
        lines += [f"| when it misleads | {cell(notes['misleads'][name])} |"]
        lines += [f"| who else computes it | {cell(notes['elsewhere'][name])} |"]
    return "\n".join(lines) + "\n"


def bare(function: Any) -> Any:
    """A function without the arguments that it was given beforehand."""
    return function.func if isinstance(function, partial) else function


def bound(number: float) -> str:
    """An end of a range."""
    return "∞" if number == float("inf") else "−∞" if number == -float("inf") else f"{number:.4g}".replace("-", "−")


def schema_pages() -> dict[str, str | bytes]:
    """The keys of both files that people write, and the JSON schemas that editors complete them with."""
    from dissensus_collect.schema import project_schema
    from dissensus_train.studies.schema import study_schema

    made: dict[str, str | bytes] = {}
    for name, schema in (("study", study_schema()), ("collect", project_schema())):
        made[f"reference/{name}.schema.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        made[f"reference/{name}.md"] = schema_page(name, schema)
    return made


def schema_page(name: str, schema: dict[str, Any]) -> str:
    """A page of all keys, table by table."""
    lines = [f"# {name}.toml", "", schema["description"], ""]
    lines += [f"Editors complete and check these keys with [its JSON schema]({name}.schema.json), which is also what"]
    lines += [f"`dissensus schema {name}` prints: write it beside your file and begin the file with", ""]
    lines += ["```toml", f"#:schema ./{name}.schema.json", "```", ""]

    def table(title: str, inside: dict[str, Any]) -> None:
        rows = {key: each for key, each in inside["properties"].items() if "properties" not in each}
        lines.extend([f"## {title}", "", inside.get("description", "") if title != "At the top" else "", ""])
        if rows:
            lines.extend(["| key | value | default | meaning |", "|---|---|---|---|"])
            for key, each in rows.items():
                default = code(json.dumps(each["default"])) if "default" in each else ""
                text = cell(each.get("description", ""))
                lines.append(f"| {code(key)} | {value_in_words(each)} | {default} | {text} |")
            lines.append("")
        for key, each in inside["properties"].items():
            if "properties" in each:
                table(f"[{key}]", each)

    table("At the top", schema)
    return "\n".join(lines)


def value_in_words(schema: dict[str, Any]) -> str:
    """What a key may be, in a few words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(value_in_words(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(code(json.dumps(each)) for each in schema["enum"])
    if schema.get("type") == "array":
        return f"a list of: {value_in_words(schema.get('items', {}))}"
    if schema.get("type") == "object":
        keys = ", ".join(code(key) for key in schema.get("properties", {}))
        return f"a table of {keys}" if keys else "a table"
    least = f" from {schema['minimum']}" if "minimum" in schema else ""
    words = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
    example = f" such as {code(schema['examples'][0])}" if "examples" in schema else ""
    return f"{words.get(schema.get('type', ''), 'anything')}{least}{example}"


def notebook_page(path: Path) -> dict[str, str | bytes]:
    """A notebook as a page with its outputs, its figures as files, the reports it wrote, and itself to download."""
    import jupytext
    import nbformat

    notebook, folder = executed(path)
    place = path.relative_to(DOCS).with_suffix("")
    made: dict[str, str | bytes] = {f"{place}.ipynb": nbformat.writes(notebook)}
    lines: list[str] = []
    for number, each in enumerate(notebook.cells):
        if each.cell_type == "markdown":
            lines += [each.source, ""]
            continue
        typed = ["```python", each.source, "```", ""]
        came = [
            line
            for turn, output in enumerate(each.outputs)
            for line in shown(output, f"{place}-{number}-{turn}", each.metadata.get("alt", ""), made)
        ]
        lines += [*came, *typed] if path.parent.name == "gallery" else [*typed, *came]
    where = "Download this page [as a notebook]"
    lines += ["---", f"{where}({path.stem}.ipynb), or read [its source in plain Python]({path.stem}.py.txt).", ""]
    made[f"{place}.py.txt"] = plain_python(jupytext.writes(notebook, fmt="py:percent"))
    made[f"{place}.md"] = "\n".join(lines)
    for page in sorted(folder.glob("*.html")):
        made[f"gallery/{path.stem}-{page.name}"] = page.read_bytes()
    return made


def plain_python(text: str) -> str:
    """A notebook's source as a program: what a notebook hands to the shell, it hands there too."""
    made = re.sub(r"^# !(.*)$", lambda line: f"subprocess.run({line[1]!r}, shell=True, check=True)", text, flags=re.M)
    return text if made == text else f"import subprocess\n\n{made}"


def shown(output: Any, figure: str, alt: str, made: dict[str, str | bytes]) -> list[str]:
    """One output of a cell in Markdown; a figure goes into a file beside the page."""
    if output.output_type == "stream" and output.name == "stderr":
        # Warnings without the place of the line on this machine; nobody reads a progress bar that is over.
        output.text = "\n".join(re.findall(r"^\S+:\d+: (\w*Warning: .*)$", output.text, re.M))
        if not output.text:
            return []
    if output.output_type == "stream":
        return ["```{ .text .output }", output.text.rstrip(), "```", ""]
    for kind, ending in (("image/svg+xml", "svg"), ("image/png", "png")):
        if kind in output.data:
            if not alt:
                raise ValueError(f'{figure}: a cell that draws needs a description, as in # %% alt="..."')
            given = output.data[kind]
            made[f"{figure}.{ending}"] = base64.b64decode(given) if ending == "png" else given
            return [f"![{alt}]({Path(figure).name}.{ending}){{ .figure }}", ""]
    if "text/html" in output.data:
        table = re.sub(r"\n\s*\n", "\n", output.data["text/html"])
        return ['<div class="output" tabindex="0">', table, "</div>", ""]
    return ["```{ .text .output }", output.data["text/plain"], "```", ""]


def executed(path: Path) -> tuple[Any, Path]:
    """The notebook with its outputs, and the folder that it ran in; run again only where it or the package changed."""
    import jupytext
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    read = hashlib.sha256(path.read_bytes() + os.environ.get("DISSENSUS_DATA", "").encode())
    for each in sorted(PACKAGES.glob("*/src/**/*.py")):
        read.update(each.read_bytes())
    folder = BUILD / f"{path.stem}-{read.hexdigest()[:16]}"
    kept = folder / "executed.ipynb"
    if not kept.is_file():
        for old in BUILD.glob(f"{path.stem}-*"):
            shutil.rmtree(old)
        folder.mkdir(parents=True)
        os.environ["IPYTHONDIR"] = str(startup())
        # Networks this small are slowed down by threads, above all on a busy machine.
        os.environ["OMP_NUM_THREADS"] = "1"
        notebook = jupytext.read(path)
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            startup_timeout=300,
            timeout=1800,
            resources={"metadata": {"path": folder}},
            # Below errors, a kernel only has to say that it talks to us without encryption, on this machine.
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
        )
        try:
            client.execute()
        except CellExecutionError as error:
            if error.ename != "URLError":
                raise
            return not_run(jupytext.read(path)), folder  # tried again the next time
        nbformat.write(notebook, kept)
    return nbformat.read(kept, as_version=4), folder


def not_run(notebook: Any) -> Any:
    """A notebook without outputs that says why, below its title."""
    first = notebook.cells[0]
    title, rest = first.source.split("\n", 1)
    why = "**Not run when this site was built**: its data could not be downloaded, and `DISSENSUS_DATA` was not set."
    first.source = f"{title}\n{why}\n\n{rest}"
    return notebook


def startup() -> Path:
    """An IPython folder whose kernels draw figures as SVG, so that no page asks a server for a script."""
    folder = BUILD / "ipython"
    place = folder / "profile_default" / "startup" / "figures.py"
    place.parent.mkdir(parents=True, exist_ok=True)
    quiet = 'import warnings\n\nwarnings.filterwarnings("ignore", message="IProgress not found")\n'
    place.write_text(f'{quiet}import altair\n\naltair.renderers.enable("svg")\n', encoding="utf-8")
    return folder
