"""Build the sdist and the wheel, and check that they hold what they should, the same each time.

With the environment variable SOURCE_DATE_EPOCH, here the time of the last commit, two wheels of the
same sources are the same byte by byte.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from build import ProjectBuilder
from build.env import DefaultIsolatedEnv
from pyproject_hooks import quiet_subprocess_runner as quiet

ROOT = Path(__file__).resolve().parent.parent
KEPT = {".py", ".pyi", ".j2", ".css", ".js", ".toml"}
DATA = ("py.typed", "affairs.csv.gz", "affairs.txt")
MANUAL = "data/share/man/man1/ldpaudit.1"
PARTS = ("attacks", "reports", "datasets", "audits", "estimators", "mechanisms")


def build_all(target: Path) -> tuple[Path, Path, Path]:
    """Build an sdist, and from it two wheels, each in a folder of its own."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", last_commit())
    with DefaultIsolatedEnv() as environment:

        def build(source: Path, kind: str, place: Path) -> Path:
            builder = ProjectBuilder.from_isolated_env(environment, source, runner=quiet)
            environment.install(builder.build_system_requires)
            return Path(builder.build(kind, place))

        sdist, wheels = build(ROOT, "sdist", target), []
        for name in ("one", "other"):
            with tarfile.open(sdist) as tar:
                tar.extractall(target / name, filter="data")
            (source,) = (target / name).iterdir()
            wheels.append(build(source, "wheel", target / name))
    return sdist, wheels[0], wheels[1]


def last_commit() -> str:
    """Return when the last commit was made, in seconds; without Git a day that never changes."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        said = ""
    return said or "1700000000"


def sources() -> set[str]:
    """Return every file that the installed package must hold."""
    package = ROOT / "ldpaudit"
    found = set()
    for folder in [package, *(package / part for part in PARTS)]:
        for path in folder.rglob("*"):
            kept = path.suffix in KEPT or path.name in DATA
            if kept and "__pycache__" not in path.parts and path.is_file():
                found.add(f"ldpaudit/{path.relative_to(package)}")
    return found


def dead_links(page: str) -> list[str]:
    """Return the links into the repository, which lead nowhere on a package's page."""
    return re.findall(r"\]\((?!https?:)([^)]*)\)", page)


def problems(wheel: Path, sdist: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = {n for n in archive.namelist() if not n.endswith("/")}
        (about,) = [n for n in names if n.endswith(".dist-info/METADATA")]
        page = archive.read(about).decode()
    package = {n for n in names if ".dist-info/" not in n and not n.endswith(MANUAL)}
    wrong = [] if any(n.endswith(MANUAL) for n in names) else [f"missing from the wheel: {MANUAL}"]
    wrong += [f"missing from the wheel: {n}" for n in sorted(sources() - package)]
    wrong += [f"a stray in the wheel: {n}" for n in sorted(package - sources())]
    wrong += [f"a dead link on the package's page: {n}" for n in dead_links(page)]
    with tarfile.open(sdist) as tar:
        links = [m.name for m in tar.getmembers() if m.issym() or m.islnk()]
    wrong += [f"a link in the sdist: {name}" for name in links]
    return wrong


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        sdist, wheel, again = build_all(Path(folder))
        wrong = problems(wheel, sdist)
        if wheel.read_bytes() != again.read_bytes():
            wrong.append("two wheels of the same sources differ")
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    if not wrong:
        sys.stdout.write(
            "The wheel and the sdist hold what they should; a second wheel is the same.\n"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
