"""What the page can be asked for: each kind is a command with its files, and what it makes."""

import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from ldpaudit.extras.web.drafts import Draft
from ldpaudit.extras.web.forms import Commands, fields_of, plain_number, words_of
from ldpaudit.extras.web.jobs import Job

GRID: Final = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0)
"""ε at which the noise is tried, besides the one that is advised."""
_PAGE, _PUBLIC, _RESULT = "audit.html", "public.html", "audit.json"
_MADE: Final = {
    "page": ("Save the page", _PAGE),
    "json": ("Save the result (JSON)", _RESULT),
    "public": ("Save the public page", _PUBLIC),
    "sweep": ("Save the curves’ numbers (JSON)", "sweep.json"),
}


@dataclass(frozen=True)
class Kind:
    """Something to ask for."""

    command: str
    """The command that answers it."""
    title: str
    lead: str
    """``title`` and ``lead``: the head of its page."""
    doing: str
    """What a job of it is called."""
    main: str
    """The field of the files that it is about."""
    makes: tuple[str, ...]
    """The files that a job of it makes."""
    files: Mapping[str, str]
    """The fields of files on its first page, with what they are called there."""


KINDS: Final = {
    "audit": Kind(
        "run",
        "Audit a release",
        "How much does a released file reveal about each person’s label, and is that what was "
        "promised?",
        "Audit of",
        "release",
        ("page", "json", "public"),
        {
            "release": "The released file, or the files of several years",
            "truth": "The true labels, if you have them: the audit is then far stronger",
        },
    ),
    "noise": Kind(
        "advise",
        "Choose the noise",
        "What should be released of a table, so that it reveals little and is still of use?",
        "Advice on",
        "data",
        ("page", "json", "sweep"),
        {"data": "The table with the true labels"},
    ),
    "compare": Kind(
        "compare",
        "Compare releases",
        "Which of two or more releases of the same data, or of their stored results, leaks less?",
        "Comparison of",
        "inputs",
        ("page", "json"),
        {
            "inputs": "Two or more released files, or results (.json)",
            "truth": "The true labels, if you have them",
            "test": "Rows of no release with true labels, to see what can still be learnt",
        },
    ),
    "stored": Kind(
        "report",
        "Open a stored result",
        "The page of an audit that was stored as JSON.",
        "Result",
        "result",
        ("page", "public"),
        {"result": "The result (.json)"},
    ),
}


def about(draft: Draft) -> str:
    """Return what tells a job apart from others of the same file: column, ε, time of the day."""
    declared = {
        name: said for one in (draft.found or {}).values() for name, said in one["declared"]
    }
    labels = draft.values.get("label") or [*declared]
    typed = [text for text in draft.values.get("epsilon", []) if text]
    claim = (
        f"ε = {plain_number(typed[0])}"
        if typed
        else "; ".join({declared[n] for n in labels if n in declared})
    )
    return ", ".join(filter(None, [" and ".join(labels), claim, time.strftime("%H:%M")]))


def left_out(advice: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the columns that a stored advice leaves out, as people name them, and why."""
    # What is stored of them is how many there are; their names are in the command alone.
    best = next(iter(advice.get("recommendations", ())), None)
    words = shlex.split(best["command"].replace("--drop=", "--drop ")) if best else []
    names = [name for option, name in pairwise(words) if option == "--drop"]
    groups = advice.get("dropped", ())
    named = sum(one["columns"] for one in groups) == len(names)
    said, left = [], iter(names)
    for one in groups:
        many = one["columns"]
        count = f"{many} column{'s' if many > 1 else ''}"
        said.append((", ".join(islice(left, many)) if named else count, one["reason"]))
    return said


@dataclass(frozen=True)
class Maker:
    """Makes jobs: knows the commands' options, the scratch folder and the memory to use."""

    commands: Commands
    scratch: Path
    memory: str | None

    def job(self, draft: Draft) -> Job:
        """Return the job that answers a filled form."""
        kind = KINDS[draft.kind]
        fields = fields_of(self.commands[kind.command])
        words = [kind.command, *words_of(fields, draft)]
        if self.memory and kind.command in ("run", "compare"):
            words.append(f"--memory={self.memory}")
        name, *others = (Path(word).name for word in draft.words(kind.main))
        folder, stem = Path(mkdtemp(prefix="job-", dir=self.scratch)), Path(name).stem
        made = {key: (title, own, f"{stem}.{own}") for key, (title, own) in _MADE.items()}
        made = {key: made[key] for key in kind.makes}
        outs = {"page": f"--html={folder / _PAGE}", "json": f"--json={folder / _RESULT}"}
        first = [*words, *(out for key, out in outs.items() if key in made)]
        stored = words if "json" not in made else ["report", str(folder / _RESULT)]
        share = [*stored, f"--html={folder / _PUBLIC}", "--profile=public"]
        steps: list[Callable[[], list[str]]] = [lambda: first]
        shown = shlex.join(["ldpaudit", *words])
        title = f"{kind.doing} {name}{f' and {len(others)} more' if others else ''}"
        job = Job(draft, title, folder, shown, steps, made, about=about(draft))
        if "public" in made:
            steps.append(lambda: share)
        if "sweep" in made:
            steps.append(partial(self._sweep, job, words))
        return job

    def release(self, advice: Job, epsilon: str) -> Job:
        """Return the job that makes an advised release, at this ε where it has a single column."""
        words = shlex.split(advice.stored()["recommendations"][0]["command"])[1:]
        if "--epsilon" in words and epsilon:
            place = words.index("--epsilon")
            words[place : place + 2] = [f"--epsilon={epsilon}"]
        out = words.index("-o") + 1
        name = words[out] = f"{Path(words[out]).stem}.parquet"
        shown = shlex.join(["ldpaudit", *words, "--secret", "truth.parquet"])
        folder = Path(mkdtemp(prefix="job-", dir=self.scratch))
        words[out] = str(folder / name)
        words.append(f"--secret={folder / 'truth.parquet'}")
        made = {
            "release": ("Save the release", name, name),
            "secret": (
                "Save the true labels: for audits, and for nobody else",
                "truth.parquet",
                "truth.parquet",
            ),
        }
        title = f"Release {name}"
        return Job(advice.draft, title, folder, shown, [lambda: words], made, about=advice.about)

    def _sweep(self, advice: Job, words: list[str]) -> list[str]:
        """Return the words that draw the curves of an advised column; none for several."""
        found: Any = advice.stored()
        first = next(iter(found["recommendations"]), None)
        labels = [word for word in words if word.startswith("--label=")]
        tried = first or next(iter(found["candidates"]), None)
        if tried is None or (first is not None and first["labels"]) or len(labels) > 1:
            return []
        numeric = any(word.startswith("--labels=") for word in words)
        grid = {*GRID, first["epsilon"]} if first else {*GRID}
        shared = {one.long for one in self.commands["sweep"]} - {"--epsilon", "--mechanism"}
        taken = [w for w in words[1:] if not w.startswith("--") or w.partition("=")[0] in shared]
        return [
            *("sweep", *taken, f"--mechanism={tried['mechanism']}"),
            f"--epsilon={','.join(map(str, sorted(grid)))}",
            f"--only={'numeric-inference' if numeric else 'label-inference'}",
            f"--json={advice.file('sweep')}",
        ]
