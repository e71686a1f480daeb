"""One parser under atheris: ``python -m fuzz.child PARSER FOLDER [options of libFuzzer]``.

A fault does not end it: the first input of each kind is kept in FOLDER/faults.
"""

import hashlib
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["ldpaudit", "tomllib"]):
    from fuzz.checking import FaultError, checked
    from fuzz.targets import TARGETS


def main() -> None:
    """Fuzz until libFuzzer's options say that it is enough."""
    name, folder, *options = sys.argv[1:]
    parse, faults, seen = TARGETS[name], Path(folder) / "faults", set[str]()
    faults.mkdir(parents=True, exist_ok=True)

    def once(content: bytes) -> None:
        try:
            checked(parse, content)
        except FaultError as fault:
            if str(fault) not in seen:
                seen.add(str(fault))
                digest = hashlib.sha256(content).hexdigest()[:12]
                (faults / f"{name}-{digest}").write_bytes(content)
                print(f"FAULT {name}: {fault}", flush=True)

    atheris.Setup([sys.argv[0], *options], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
