"""What an installation of ldpaudit pulls in: its known vulnerabilities, and a list of it (SBOM).

Looked at is what ``ldpaudit`` requires, with the extras that users install, in the versions of this
environment. A known vulnerability is an error; where the service that knows them does not answer,
one line says that nothing was checked. With ``--sbom FILE`` a list in CycloneDX's JSON is written.
"""

import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

EXTRAS = ("networks", "continuous", "accounting", "excel", "statistics", "cluster", "web")
"""What users install; ``docs``, ``dev`` and ``fuzz`` are tools."""
ACCEPTED: Mapping[str, str] = {}
"""Known vulnerabilities that do not concern ldpaudit, with the reason for each."""
SECONDS = 20


def called(name: str) -> str:
    """Return a package's name as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(name: str = "ldpaudit", extras: tuple[str, ...] = EXTRAS) -> dict[str, Distribution]:
    """Return a package and all that it requires, directly or not, as far as it is installed."""
    found: dict[str, Distribution] = {}
    waiting = [(name, frozenset(extras))]
    seen = set(waiting)
    while waiting:
        one, asked = waiting.pop()
        try:
            found[called(one)] = distribution(one)
        except PackageNotFoundError:
            continue
        for need in needs(found[called(one)], asked):
            following = (called(need.name), frozenset(need.extras))
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return dict(sorted(found.items()))


def needs(package: Distribution, extras: frozenset[str] = frozenset()) -> Iterator[Requirement]:
    """Yield what a package requires here, with some of its extras."""
    for line in package.requires or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": e}) for e in ("", *extras)):
            yield requirement


def asked_service(pinned: list[str]) -> str:
    """Return what pip-audit prints about packages in their versions; nothing without an answer."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text("\n".join(pinned))
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(file), "--no-deps"]
        command += ["--disable-pip", "--format", "json", "--progress-spinner", "off"]
        command += ["--timeout", "5", "--cache-dir", folder]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return ""
    return done.stdout


def judged(answer: str, asked: int) -> tuple[bool, list[str]]:
    """Return whether the packages may be used, and lines that say what is known of them."""
    try:
        packages: list[dict[str, Any]] = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return True, ["Known vulnerabilities: not checked: the service does not answer."]
    known = [one for one in packages if "vulns" in one]
    if not known:
        return True, ["Known vulnerabilities: not checked: the service knows no package."]
    lines = [
        f"{one['name']} {one['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions'])}"
        for one in known
        for flaw in one["vulns"]
        if not {flaw["id"], *flaw.get("aliases", ())} & ACCEPTED.keys()
    ]
    if lines:
        return False, lines
    rest = f" (not checked: {asked - len(known)})" if asked > len(known) else ""
    return True, [f"Known vulnerabilities: none in {len(known)} packages{rest}."]


def bill_of_materials(packages: Mapping[str, Distribution]) -> str:
    """Return the list as CycloneDX's JSON; the same packages give the same text."""
    parts = {name: component(name, package) for name, package in packages.items()}
    text = "\n".join(f"{name} {package.version}" for name, package in packages.items())
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, text))
    second = int(os.environ.get("SOURCE_DATE_EPOCH", "1700000000"))
    bom.metadata.timestamp = datetime.datetime.fromtimestamp(second, datetime.UTC)
    bom.metadata.component = parts["ldpaudit"]
    for name, package in packages.items():
        asked = frozenset(EXTRAS if name == "ldpaudit" else ())
        below = {called(need.name) for need in needs(package, asked)} & parts.keys() - {name}
        bom.register_dependency(parts[name], [parts[one] for one in sorted(below)])
        if name != "ldpaudit":
            bom.components.add(parts[name])
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def component(name: str, package: Distribution) -> Component:
    kind = ComponentType.APPLICATION if name == "ldpaudit" else ComponentType.LIBRARY
    purl = PackageURL("pypi", None, name, package.version)
    return Component(
        name=name, version=package.version, type=kind, purl=purl, bom_ref=purl.to_string()
    )


def main(words: list[str]) -> int:
    packages = required()
    if words[:1] == ["--sbom"]:
        place = Path(words[1])
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(bill_of_materials(packages))
        sys.stdout.write(f"{place}: {len(packages)} packages.\n")
        return 0
    # A version of this machine's own build ("2.9+cpu") is known by what stands before the sign.
    pinned = [f"{n}=={p.version.partition('+')[0]}" for n, p in packages.items() if n != "ldpaudit"]
    fine, lines = judged(asked_service(pinned), len(pinned))
    (sys.stdout if fine else sys.stderr).write("\n".join(lines) + "\n")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
