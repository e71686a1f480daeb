"""The page of policies: its words are those of ``ldpaudit policy explain`` and of the presets."""

from collections.abc import Mapping
from typing import Any

from ldpaudit.judging.policy.explaining import ALWAYS, CHECKS, RULES, check_keys, keys
from ldpaudit.judging.policy.presets import PRESETS, STARTER, preset

HEAD = """\
# Policies

A policy is a TOML file that says what a release may leak: which checks run, which of them
decide, and how sure the audit has to be. The exit status of `run` is its verdict.

<!-- first: ldpaudit privatize patients.csv -o release.parquet --label diagnosis --mechanism rr \
--epsilon 1 --secret truth.parquet -->
```console
$ ldpaudit policy init gate.toml                  # a starter to edit
$ ldpaudit policy check gate.toml                 # refuses what run would refuse, without data
$ ldpaudit policy explain claimed-epsilon         # a key, check or rule of this page; or all
$ ldpaudit policy show ldpaudit:strict            # a preset, as it is
$ ldpaudit run release.parquet --truth truth.parquet --policy gate.toml
```

[What a verdict advises](verdict.md).

"""
GRID = (
    ("passes", "error", "pass", "yes", "0"),
    ("is inconclusive", "error", "inconclusive", "not yet", "3"),
    ("fails", "error", "fail", "no", "1"),
    ("fails and is waived", "error", "pass: *violation found, waived*", "yes, by waiver", "0"),
    ("passes, or is inconclusive", "warn", "pass", "yes", "0"),
    ("fails", "warn", "pass", "not yet", "0"),
    ("fails and is waived", "warn", "pass", "yes, by waiver", "0"),
    ("none could be answered, or the policy is bad", "any", "–", "–", "2"),
)
"""What a check answers, its level, and what follows where every other check passes."""
TITLES = {
    "exit-status": "Verdict, decision, exit status",
    "waiving": "Waivers",
    "several-checks": "Several checks",
    "merging": "Presets and the policy's own keys",
}


def policy_page() -> str:
    """Return the page."""
    grid = table(("a check …", "its level", "verdict", "publish", "exit status"), GRID)
    parts = (
        ("Presets", presets()),
        (TITLES["merging"], RULES["merging"]),
        (TITLES["exit-status"], f"{grid}\n{not_in_grid(RULES['exit-status'])}"),
        (TITLES["several-checks"], RULES["several-checks"]),
        (TITLES["waiving"], f"{RULES['waiving']}\n\n{example()}"),
        ("Keys", listed({k: text for k, text in keys().items() if not k.startswith("waivers.")})),
        ("Checks", checks()),
        ("Checks that every audit asks", listed(ALWAYS)),
    )
    return HEAD + "\n".join(f"## {title}\n\n{text.rstrip()}\n" for title, text in parts)


def presets() -> str:
    """Return the presets side by side."""
    purposes = "\n".join(f"- `{name}`: {purpose}." for name, purpose in PRESETS.items())
    said = {name: flat(preset(name)) for name in PRESETS}
    rows = [k for k in dict.fromkeys(k for one in said.values() for k in one) if k != "schema"]
    cells = ((f"`{k}`", *(one.get(k, "–") for one in said.values())) for k in rows)
    shown = table(("", *said), cells)
    return f"{purposes}\n\n{shown}\n“–”: off, or the default.\n"


def flat(content: Mapping[str, Any]) -> dict[str, str]:
    """Return what a preset says, by key; a check's level under the check's own name."""
    found = {f"audit.{key}": written(value) for key, value in content["audit"].items()}
    found |= {f"decision.{k}": written(value) for k, value in content.get("decision", {}).items()}
    for check, section in content["checks"].items():
        found[check] = section["level"]
        rest = {key: value for key, value in section.items() if key != "level"}
        found |= {f"{check}.{key}": written(value) for key, value in rest.items()}
    return found


def written(value: Any) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, list):
        return f"[{', '.join(written(part) for part in value)}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def example() -> str:
    """Return the waiver of the starter."""
    lines = STARTER[STARTER.index("# [[waivers]]") :].splitlines()
    return "```toml\n" + "\n".join(line.removeprefix("# ") for line in lines) + "\n```"


def checks() -> str:
    """Return what `level` means, then each check with its other keys."""
    parts = [f"Each check has a `level`. {of_check(next(iter(CHECKS)))['level']}\n"]
    for name, text in CHECKS.items():
        own = {key: words for key, words in of_check(name).items() if key != "level"}
        keys = f"\n{listed(own)}" if own else ""
        parts.append(f"### {name}\n\n{text}\n{keys}")
    return "\n".join(parts)


def of_check(name: str) -> dict[str, str]:
    """Return the keys of a check."""
    start, every = f"{name}.", check_keys().items()
    return {key.removeprefix(start): words for key, words in every if key.startswith(start)}


def listed(words: Mapping[str, str]) -> str:
    """Return a list of names and what they mean."""
    return "".join(f"- `{name}`: {text}\n" for name, text in words.items())


def not_in_grid(rule: str) -> str:
    """Return the rule of exit statuses without what each status means."""
    start = "The worst check of level error decides."
    return rule[rule.index(start) :]


def table(head: tuple[str, ...], rows: Any) -> str:
    """Return a table."""
    first, *others = ("| " + " | ".join(map(escaped, row)) + " |\n" for row in (head, *rows))
    return first + "|" + "---|" * len(head) + "\n" + "".join(others)


def escaped(cell: str) -> str:
    """Return a cell's text with nothing that ends the cell."""
    return cell.replace("|", "\\|")
