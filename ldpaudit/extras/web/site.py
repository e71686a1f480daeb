"""The pages, and what their forms do; every address begins with the server's token."""

import asyncio
import hashlib
import json
import math
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ldpaudit.extras.web.curves import curves_of
from ldpaudit.extras.web.drafts import Draft
from ldpaudit.extras.web.forms import PRESETS, Commands, field_of, fields_of, plain_number, proposed
from ldpaudit.extras.web.jobs import Job, work
from ldpaudit.extras.web.kinds import KINDS, Kind, Maker, left_out
from ldpaudit.surfaces import spelt
from ldpaudit.work.memory import shown

_LOOK: Final = ("ldpaudit.reports", "templates")
_POLICY: Final = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
_FIELD: Final = re.compile(r'<kbd data-option="([a-z-]+)">([^<]*)</kbd>')
_ODDS: Final = (
    ("0.1", "1.1"),
    ("0.5", "1.6"),
    ("1", "2.7"),
    ("2", "7.4"),
    ("3", "20"),
    ("5", "148"),
)
"""ε, and the factor by which it changes odds at most."""


class Site:
    """The pages of one server.

    ``commands``: the options of the commands that pages run; ``scratch``: the folder of all
    files; ``token``: the first part of every address; ``most``: bytes that may be uploaded in
    all; ``memory``: what audits are given as ``--memory``.
    """

    def __init__(
        self, commands: Commands, scratch: Path, token: str, most: int, memory: str | None = None
    ) -> None:
        self._commands, self._scratch, self._most = commands, scratch, most
        self._make = Maker(commands, scratch, memory)
        self._jobs: dict[str, Job] = {}
        self._turn = asyncio.Lock()
        self._drafts: dict[str, Draft] = {}
        # By what the noise was drawn for: a table's digest and its private columns.
        self._drawn: dict[tuple[str, ...], Job] = {}
        self._base = f"/{token}"
        self.end: Callable[[], None] = lambda: None
        loaders = [PackageLoader("ldpaudit.extras.web"), PackageLoader(*_LOOK)]
        self._pages = Environment(
            loader=ChoiceLoader(loaders),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.filters["spelt"] = partial(spelt, surface="page")
        self._pages.globals |= {
            "base": self._base,
            "kinds": KINDS,
            "presets": PRESETS,
            "exp": math.exp,
        }
        routes = [
            Route("/", self._start),
            Route("/end", self._end, methods=["POST"]),
            Route("/sample", self._sample, methods=["POST"]),
            Route("/job/{job}", self._show),
            Route("/job/{job}/{what}", self._act, methods=["POST"]),
            Route("/job/{job}/{what}/{key}", self._made),
            Mount("/static", StaticFiles(packages=[("ldpaudit.extras.web", "static"), _LOOK])),
            Route("/{kind}", self._new, methods=["GET", "POST"]),
            Route("/{kind}/{draft}", self._form, methods=["GET", "POST"]),
        ]
        self.app = Starlette(
            routes=[Mount(self._base, routes=routes)],
            exception_handlers={HTTPException: self._refused, Exception: self._refused},
        )

    def room(self) -> int:
        """Return how many bytes may be uploaded now."""
        files = (file for one in self._drafts.values() for file in one.folder.iterdir())
        return self._most - sum(file.stat().st_size for file in files)

    def opened(self, files: Sequence[str]) -> str:
        """Return the place of a form about files that were named on the command line."""
        stored = all(name.lower().endswith(".json") for name in files)
        kind = "audit" if not stored else "stored" if len(files) == 1 else "compare"
        draft = self._draft(kind)
        draft.given(files, KINDS[kind].main)
        return f"{kind}/{draft.id}"

    def _html(self, page: str, status: int = 200, **words: Any) -> HTMLResponse:
        return HTMLResponse(self._pages.get_template(f"{page}.html.j2").render(**words), status)

    def _to(self, place: str) -> RedirectResponse:
        return RedirectResponse(f"{self._base}/{place}", 303)

    async def _refused(self, _request: Request, error: Exception) -> Response:
        why = getattr(error, "strerror", None) or f"internal fault ({type(error).__name__})"
        told = {
            404: "There is no such page; it may be of an earlier start.",
            413: f"This is more than may be uploaded: {shown(self._most)} in all (--memory). "
            "Nothing of it was kept. Start with the file’s name instead: ldpaudit open FILE.",
            500: f"This could not be done: {why.lower()}.",
        }
        status = getattr(error, "status_code", 500)
        words = told.get(status, getattr(error, "detail", ""))
        return self._html("message", status, words=words)

    async def _start(self, _request: Request) -> Response:
        return self._html("start", jobs=[*reversed(self._jobs.values())])

    async def _end(self, _request: Request) -> Response:
        self.end()
        return self._html("message", words="ldpaudit has ended. Nothing was kept.")

    async def _sample(self, _request: Request) -> Response:
        draft = self._draft("audit")
        await work(["sample", str(draft.folder)], draft.folder, lambda _: None)
        draft.files = {"release": ["dishonest.parquet"], "truth": ["truth.parquet"]}
        return await self._looked_at(draft)

    def _draft(self, kind: str) -> Draft:
        draft = Draft(kind, Path(mkdtemp(prefix="draft-", dir=self._scratch)))
        self._drafts[draft.id] = draft
        return draft

    async def _new(self, request: Request) -> Response:
        name = request.path_params["kind"]
        kind = _known(KINDS, name)
        if request.method == "GET":
            return self._html("new", name=name, kind=kind)
        return await self._taken(request, self._draft(name), kind)

    async def _form(self, request: Request) -> Response:
        draft = _known(self._drafts, request.path_params["draft"])
        kind = KINDS[draft.kind]
        if request.method == "POST":
            return await self._taken(request, draft, kind)
        if draft.found is None and draft.files and not draft.error:
            return await self._looked_at(draft)
        fields = fields_of(self._commands[kind.command])
        nothing: dict[str, Any] = {"columns": [], "rows": None, "declared": []}
        return self._html(
            "form",
            draft=draft,
            kind=kind,
            fields=fields,
            wrong=field_of(draft.error, fields, draft),
            chosen=draft.values.get("label") or proposed(draft),
            odds=_ODDS,
            **next(iter((draft.found or {}).values()), nothing),
        )

    async def _taken(self, request: Request, draft: Draft, kind: Kind) -> Response:
        """Keep what a form sends; look at new files, or start the job."""
        fields = fields_of(self._commands[kind.command])
        async with _form_of(request) as form:
            await run_in_threadpool(_keep, form, draft, fields)
        draft.error = "" if draft.files.get(kind.main) else "Choose a file first."
        columns = [name for one in (draft.found or {}).values() for name, _ in one["columns"]]
        if columns and "label" in fields and not _private(draft):
            draft.error = "Choose the column with the sensitive answer (--label)."
        if draft.error:
            return self._to(f"{draft.kind}/{draft.id}")
        return await self._looked_at(draft)

    async def _looked_at(self, draft: Draft) -> Response:
        """Find out the columns of a form's main file and show the form; start where they are known.

        A stored result has no form.
        """
        main, heard = KINDS[draft.kind].main, [""]
        if draft.kind == "stored" or draft.found is not None:
            return self._started(self._make.job(draft))
        roles = [main, *(role for role in KINDS[draft.kind].files if role != main)]
        files = [word for role in roles for word in draft.words(role)]
        names = [word for word in files if not word.lower().endswith(".json")]
        names += [word for word in draft.files.get("policy", []) if word.lower().endswith(".toml")]
        out = draft.folder.parent / f"{draft.folder.name}.look"
        status = await work(["look", str(out), *names], draft.folder, heard.append)
        draft.found = json.loads(out.read_text("utf-8")) if status == 0 else None
        draft.error = "" if status == 0 else heard[-1]
        return self._to(f"{draft.kind}/{draft.id}")

    def _started(self, job: Job) -> Response:
        alike = sum(
            one.title == job.title and one.about.partition(" (")[0] == job.about
            for one in self._jobs.values()
        )
        job.about += f" ({alike + 1})" if alike else ""
        self._jobs[job.id] = job
        job.task = asyncio.create_task(job.run(self._turn))
        return self._to(f"job/{job.id}")

    async def _show(self, request: Request) -> Response:
        job = _known(self._jobs, request.path_params["job"])
        if job.state == "refused":
            return self._to(f"{job.draft.kind}/{job.draft.id}")
        if job.state != "done":
            return self._html("job", job=job)
        if "page" in job.downloads and job.draft.kind != "noise":
            return self._to(f"job/{job.id}/page/page")
        advice, sweep = job.stored(), job.stored("sweep")
        curves = curves_of(sweep, advice, request.query_params.get("at")) if sweep else None
        drawn, key = "drawn" in request.query_params, "release"
        gone = key in job.downloads and not job.file(key).is_file()
        shown = {"advice": advice, "curves": curves, "left_out": left_out(advice)}
        return self._html("done", job=job, drawn=drawn, gone=gone, **shown)

    async def _act(self, request: Request) -> Response:
        """Stop a job, make the release that it advises, or audit the one that it made."""
        job = _known(self._jobs, request.path_params["job"])
        what = request.path_params["what"]
        if what == "stop":
            job.stop()
            return self._to(f"job/{job.id}")
        if what == "release" and job.stored().get("recommendations"):
            async with _form_of(request) as form:
                epsilon = plain_number(str(form.get("epsilon", "")))
                deleted = form.get("deleted") == "1"
            return await self._drawn_once(job, epsilon, deleted=deleted)
        if what != "audit" or "secret" not in job.downloads:
            raise HTTPException(404)
        draft = self._draft("audit")
        for role, key in (("release", "release"), ("truth", "secret")):
            draft.files[role] = [job.downloads[key][2]]
            os.link(job.file(key), draft.folder / job.downloads[key][2])
        return await self._looked_at(draft)

    async def _drawn_once(self, advice: Job, epsilon: str, *, deleted: bool) -> Response:
        """Draw the noise of a table's columns, or show the release for which it was drawn."""
        draft = advice.draft
        table = draft.folder / draft.words(KINDS[draft.kind].main)[0]
        key = (await run_in_threadpool(_digest, table), *sorted(_private(draft)))
        first = self._drawn.get(key)
        kept = first is not None and first.state not in ("refused", "stopped")
        if first is not None and kept and not deleted:
            return self._to(f"job/{first.id}?drawn=1")
        if first is not None and kept:
            for name in first.downloads:
                first.file(name).unlink(missing_ok=True)
        self._drawn[key] = self._make.release(advice, epsilon)
        return self._started(self._drawn[key])

    async def _made(self, request: Request) -> Response:
        """Return a file that a job made, by our own name of it; a page after a line of links."""
        job = _known(self._jobs, request.path_params["job"])
        what, key = request.path_params["what"], request.path_params["key"]
        name, path = _known(job.downloads, key)[2], job.file(key)
        if what not in ("page", "file") or not path.is_file():
            raise HTTPException(404)
        if what == "file":
            return FileResponse(path, media_type="application/octet-stream", filename=name)
        text = path.read_text("utf-8") if path.suffix == ".html" else ""
        found = _POLICY.search(text)
        if found is None:
            raise HTTPException(404)
        links = self._pages.get_template("links.html.j2").render(job=job)
        text = text.replace("<body>\n", f"<body>\n{links}", 1)
        form = f"{self._base}/{job.draft.kind}/{job.draft.id}"
        fields = {
            one.long: one
            for one in fields_of(self._commands[KINDS[job.draft.kind].command]).values()
        }

        def linked(found: "re.Match[str]") -> str:
            field = fields.get(f"--{found[1]}")
            role = "file" if field and field.name in KINDS[job.draft.kind].files else "f"
            if found[1] == "profile":
                return f'<a href="{self._base}/job/{job.id}/file/public">{found[2]}</a>'
            return f'<a href="{form}#{role}-{field.name}">{found[2]}</a>' if field else found[2]

        text = _FIELD.sub(linked, text)
        policy = f"{found[1]}; frame-ancestors 'none'"
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})


def _private(draft: Draft) -> list[str]:
    """Return the private columns of a form: those chosen, or else those declared."""
    return [name for name in draft.values.get("label", []) if name] or proposed(draft)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@asynccontextmanager
async def _form_of(request: Request) -> AsyncIterator[FormData]:
    """Give the form that a request sends; one that names no real encoding is refused."""
    try:
        async with request.form(max_part_size=1 << 20) as form:
            yield form
    except (LookupError, UnicodeError):
        raise HTTPException(400, "The form could not be read.") from None


def _known(these: Any, key: str) -> Any:
    """Return what is known by a key that an address holds."""
    if key not in these:
        raise HTTPException(404)
    return these[key]


def _keep(form: FormData, draft: Draft, fields: Any) -> None:
    """Keep what was filled in; files of the form's main field are to be looked at."""
    uploads: dict[str, list[Any]] = {}
    draft.values = {}
    for name, value in form.multi_items():
        if name in fields and isinstance(value, str):
            draft.values.setdefault(name, []).append(value.replace("\0", ""))
        elif name in fields and isinstance(value, UploadFile) and value.filename:
            uploads.setdefault(name, []).append((value.filename, value.file))
    for role in form.getlist("without"):
        draft.without(str(role))
    for role, files in uploads.items():
        draft.keep(role, files)
    if uploads:  # They are looked at, and refused, before anything else is done.
        draft.found = None
