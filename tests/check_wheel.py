"""Build the wheel and the sdist and check that what they hold is right: real folders, no strays."""

import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ("py.typed", "affairs.csv.gz", "affairs.txt")
MANUAL = "data/share/man/man1/ldpaudit.1"
PARTS = ("attacks", "reports", "datasets", "audits", "estimators", "mechanisms")


def build(target: Path) -> tuple[Path, Path]:
    command = [sys.executable, "-m", "build", "--outdir", str(target), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return next(target.glob("*.whl")), next(target.glob("*.tar.gz"))


def sources() -> set[str]:
    """Return every file that the installed package must hold."""
    package = ROOT / "ldpaudit"
    found = set()
    for folder in [package, *(package / part for part in PARTS)]:
        for path in folder.rglob("*"):
            kept = path.suffix in {".py", ".j2", ".css", ".toml"} or path.name in DATA
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
        wrong = problems(*build(Path(folder)))
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    if not wrong:
        sys.stdout.write("The wheel and the sdist hold what they should.\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
