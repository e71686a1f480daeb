"""How Sphinx builds the site: `make docs`.

The Markdown files are the pages, as a repository browser shows them. What they do not hold is made
here: the navigation, which follows the links of the index pages, and the pages of the Python names.
"""

import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

project = html_title = "ldpaudit"
author = "The ldpaudit developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/README"
include_patterns = ["*.md", "examples/**.md", "docs/**.md", "benchmarks/**.md"]
myst_heading_anchors = 4
smartquotes_action = "qe"  # Two hyphens begin an option.
suppress_warnings = ["myst.header"]  # Results of benchmarks start at the second level.
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_use_ivar = True

html_theme = "furo"
html_show_sphinx = html_show_copyright = html_copy_source = False

NAMES = ROOT / "docs" / "reference" / "names"
MODULES = (
    "ldpaudit",
    *(
        f"ldpaudit.{part}"
        for part in ("mechanisms", "learners", "attacks", "synthesis", "datasets")
    ),
)
LINK = re.compile(r"\]\(([^)#:\s]+\.md)(?:#[^)]*)?\)")
TITLES = {"README": "README <{}>"}  # Otherwise its title: the name of the program.
DOOR = '<!doctype html><title>ldpaudit</title><meta http-equiv="refresh" content="0; url={}">\n'


def setup(app):
    """Hook in the navigation, the pages of names, and the page at the door."""
    app.connect("config-inited", lambda app, config: write_names())
    app.connect("source-read", add_navigation)
    app.connect("autodoc-skip-member", of_other_packages)
    app.connect("autodoc-process-docstring", keep_bars)
    door = DOOR.format(f"{root_doc}.html")
    app.connect("build-finished", lambda app, _: (Path(app.outdir) / "index.html").write_text(door))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_names():
    """Write a folder for each module: an index page, and a page for each public name.

    A name that a module before it lists, too, has its page there.
    """
    shutil.rmtree(NAMES, ignore_errors=True)
    seen = {}
    for module in MODULES:
        folder = NAMES / module.rpartition(".")[2]
        folder.mkdir(parents=True)
        home = import_module(module)
        public = [name for name in home.__all__ if not name.startswith("_")]
        public = [name for name in public if not isinstance(getattr(home, name), ModuleType)]
        for name in public:
            if seen.setdefault(name, folder) is folder:
                (folder / f"{name}.md").write_text(page_of(module, name))
        listed = "".join(f"- [`{n}`](../{seen[n].name}/{n}.md)\n" for n in public)
        (folder / "README.md").write_text(f"# `{module}`\n\n{listed}")


def page_of(module, name):
    """Return the page of one public name."""
    value = getattr(import_module(module), name)
    kind = "class" if isinstance(value, type) else "function" if callable(value) else "data"
    members = "\n   :members:\n   :inherited-members:" if kind == "class" else ""
    return f"# `{name}`\n\n```{{eval-rst}}\n.. auto{kind}:: {module}.{name}{members}\n```\n"


def of_other_packages(app, what, name, member, skip, options):
    """Leave out what classes inherit from scikit-learn, pydantic and others."""
    home = getattr(member, "__module__", None) or "ldpaudit"
    return True if home.partition(".")[0] != "ldpaudit" else None


def keep_bars(app, what, name, member, options, lines):
    """Take |x| for an absolute value, not for a substitution."""
    for at, line in enumerate(lines):
        parts = line.split("`")  # Every second one is code.
        parts[::2] = (part.replace("|", r"\|") for part in parts[::2])
        lines[at] = "`".join(parts)


def add_navigation(app, name, source):
    """Append to an index page a table of contents for the links under each of its headings."""
    if not name.endswith("/README"):
        return
    if name == "docs/reference/README":
        listed = (m.rpartition(".")[2] for m in MODULES)
        source[0] += "".join(f"- [`ldpaudit.{m}`](names/{m}/README.md)\n" for m in listed)
    for section in re.split(r"^(?=#+ )", source[0], flags=re.MULTILINE):
        pages = dict.fromkeys(pages_below(name, section))
        if pages:
            heading = section.partition("\n")[0].lstrip("# ")
            caption = f":caption: {heading}\n" if name == root_doc else ""
            listed = "\n".join(TITLES.get(page, "{}").format(f"/{page}") for page in pages)
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n{caption}\n{listed}\n```\n"


def pages_below(index, text):
    """Give the linked pages whose place in the navigation is under this index page."""
    for target in LINK.findall(text):
        page = ((ROOT / index).parent / target).resolve()
        name = page.relative_to(ROOT).with_suffix("").as_posix()
        if page.exists() and name != index and index_of(page) == index:
            yield name


def index_of(page):
    """Return the index page under which a page stands: the nearest one at or above its folder."""
    folders = list(page.parents)[page.name == "README.md" :]
    for folder in folders:
        if folder != ROOT and folder.is_relative_to(ROOT) and (folder / "README.md").exists():
            return (folder / "README").relative_to(ROOT).as_posix()
    return root_doc
