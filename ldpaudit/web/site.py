"""The pages, and what their forms do; every address begins with the server's token."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
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

from ldpaudit.web.curves import curves_of
from ldpaudit.web.drafts import Draft
from ldpaudit.web.forms import PRESETS, Commands, field_of, fields_of, plain_number, proposed
from ldpaudit.web.jobs import Job, Jobs, work
from ldpaudit.web.kinds import KINDS, Kind, Maker
from ldpaudit.work.memory import shown

_LARGEST_FIELD: Final = 1 << 20
"""Bytes of a field that is no file."""
_POLICY: Final = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
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

    Parameters
    ----------
    commands : mapping
        The options of the commands that pages run.
    scratch : Path
        The folder of all files.
    token : str
        The first part of every address.
    most : int
        Bytes that may be uploaded in all.
    memory : str, optional
        What audits are given as ``--memory``.
    """

    def __init__(
        self, commands: Commands, scratch: Path, token: str, most: int, memory: str | None = None
    ) -> None:
        self._commands, self._scratch, self._most = commands, scratch, most
        self._make, self._jobs = Maker(commands, scratch, memory), Jobs()
        self._drafts: dict[str, Draft] = {}
        self._base = f"/{token}"
        self.end: Callable[[], None] = lambda: None
        loaders = [PackageLoader("ldpaudit.web"), PackageLoader("ldpaudit.reports", "templates")]
        self._pages = Environment(
            loader=ChoiceLoader(loaders),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.globals |= {"base": self._base, "kinds": KINDS, "presets": PRESETS}
        routes = [
            Route("/", self._start),
            Route("/style.css", self._style),
            Route("/end", self._end, methods=["POST"]),
            Route("/sample", self._sample, methods=["POST"]),
            Route("/job/{job}", self._show),
            Route("/job/{job}/stop", self._stop, methods=["POST"]),
            Route("/job/{job}/release", self._release, methods=["POST"]),
            Route("/job/{job}/audit", self._audit, methods=["POST"]),
            Route("/job/{job}/page/{key}", self._page),
            Route("/job/{job}/file/{key}", self._file),
            Mount("/static", StaticFiles(packages=[("ldpaudit.web", "static")])),
            Route("/{kind}", self._new, methods=["GET", "POST"]),
            Route("/{kind}/{draft}", self._form, methods=["GET", "POST"]),
        ]
        self.app = Starlette(
            routes=[Mount(self._base, routes=routes)],
            lifespan=self._living,
            exception_handlers={HTTPException: self._refused},
        )

    def room(self) -> int:
        """Return how many bytes may be uploaded now."""
        return self._most - sum(draft.size for draft in self._drafts.values())

    def opened(self, files: Sequence[str]) -> str:
        """Return the place of a form about files that were named on the command line."""
        stored = all(name.lower().endswith(".json") for name in files)
        kind = "audit" if not stored else "stored" if len(files) == 1 else "compare"
        draft = self._draft(kind)
        draft.given(files, KINDS[kind].main)
        return f"{kind}/{draft.id}"

    @contextlib.asynccontextmanager
    async def _living(self, _app: Starlette) -> AsyncIterator[None]:
        running = asyncio.create_task(self._jobs.run())
        try:
            yield
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    def _html(self, page: str, status: int = 200, **words: Any) -> HTMLResponse:
        return HTMLResponse(self._pages.get_template(f"{page}.html.j2").render(**words), status)

    def _to(self, place: str) -> RedirectResponse:
        return RedirectResponse(f"{self._base}/{place}", 303)

    async def _refused(self, _request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        told = {404: "There is no such page; it may be of an earlier start."}
        words = told.get(error.status_code, str(error.detail))
        if error.status_code == 413:
            words = (
                f"This is more than may be uploaded: {shown(self._most)} in all (--memory). "
                f"Nothing of it was kept. Start with the file’s name: ldpaudit open FILE."
            )
        return self._html("message", error.status_code, words=words)

    async def _style(self, _request: Request) -> Response:
        sheets = [self._pages.get_template(name).render() for name in ("report.css", "open.css")]
        return Response("\n".join(sheets), media_type="text/css")

    async def _start(self, _request: Request) -> Response:
        jobs = [*reversed(self._jobs.all.values())]
        return self._html("start", jobs=jobs)

    async def _end(self, _request: Request) -> Response:
        self.end()
        return self._html("message", words="ldpaudit has ended. Nothing was kept.")

    async def _sample(self, _request: Request) -> Response:
        draft = self._draft("audit")
        await work(["sample", str(draft.folder)], draft.folder, lambda _: None)
        files = {"release": "dishonest.parquet", "truth": "truth.parquet"}
        for role, name in files.items():
            draft.given([str(draft.folder / name)], role)
        return await self._looked_at(draft)

    def _draft(self, kind: str) -> Draft:
        folder = self._scratch / f"draft{len(self._drafts) + 1}"
        folder.mkdir(mode=0o700)
        draft = Draft(kind, folder)
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
        seen = (draft.found or {}).values()
        return self._html(
            "form",
            draft=draft,
            kind=kind,
            fields=fields,
            wrong=field_of(draft.error, fields, draft),
            columns=next((one["columns"] for one in seen), []),
            rows=next((one["rows"] for one in seen), None),
            declared=next((one["declared"] for one in seen), []),
            chosen=draft.values.get("label") or proposed(draft),
            odds=_ODDS,
        )

    async def _taken(self, request: Request, draft: Draft, kind: Kind) -> Response:
        """Keep what a form sends; look at new files, or start the job."""
        fields = fields_of(self._commands[kind.command])
        async with request.form(max_part_size=_LARGEST_FIELD) as form:
            new = await run_in_threadpool(_kept, form, draft, fields)
        draft.error = ""
        if not draft.files.get(kind.main):
            draft.error = "Choose a file first."
            return self._to(f"{draft.kind}/{draft.id}")
        if draft.kind != "stored" and (new or draft.found is None):
            return await self._looked_at(draft)
        return self._started(self._make.job(draft))

    def _started(self, job: Job) -> Response:
        self._jobs.add(job)
        return self._to(f"job/{job.id}")

    async def _looked_at(self, draft: Draft) -> Response:
        """Find out the columns of a form's main file, then show the form."""
        kind, heard = KINDS[draft.kind], [""]
        if draft.kind == "stored":
            return self._started(self._make.job(draft))
        names = [word for word in draft.words(kind.main) if not word.lower().endswith(".json")]
        out = draft.folder.parent / f"{draft.folder.name}.look"
        status = await work(["look", str(out), *names[:1]], draft.folder, heard.append)
        draft.found = json.loads(out.read_text("utf-8")) if status == 0 else None
        draft.error = "" if status == 0 else heard[-1]
        return self._to(f"{draft.kind}/{draft.id}")

    async def _show(self, request: Request) -> Response:
        job = _known(self._jobs.all, request.path_params["job"])
        if job.state == "refused":
            return self._to(f"{job.draft.kind}/{job.draft.id}")
        if job.state != "done":
            return self._html("job", job=job, kind=KINDS[job.draft.kind])
        if "page" in job.downloads and job.draft.kind != "noise":
            return self._to(f"job/{job.id}/page/page")
        advice, curves = job.stored(), None
        if job.draft.kind == "noise" and "page" in job.downloads:
            sweep = job.stored("sweep")
            curves = curves_of(sweep, advice, request.query_params.get("at")) if sweep else None
        return self._html("done", job=job, advice=advice, curves=curves)

    async def _stop(self, request: Request) -> Response:
        job = _known(self._jobs.all, request.path_params["job"])
        self._jobs.stop(job)
        return self._to(f"job/{job.id}")

    async def _release(self, request: Request) -> Response:
        job = _known(self._jobs.all, request.path_params["job"])
        advice = job.stored()
        if not (advice and advice.get("recommendations")):
            raise HTTPException(404)
        async with request.form() as form:
            epsilon = plain_number(str(form.get("epsilon", "")))
        return self._started(self._make.release(job, epsilon))

    async def _audit(self, request: Request) -> Response:
        """Fill in the audit of a release that a job made."""
        job = _known(self._jobs.all, request.path_params["job"])
        draft = self._draft("audit")
        for role, key in (("release", "release"), ("truth", "secret")):
            _known(job.downloads, key)
            draft.given([str(job.file(key))], role)
        return await self._looked_at(draft)

    async def _page(self, request: Request) -> Response:
        """Show a page that a job made, with a line of links before it."""
        job, path = self._made(request)
        text = path.read_text("utf-8")
        found = _POLICY.search(text)
        if found is None:
            raise HTTPException(404)
        links = self._pages.get_template("links.html.j2").render(job=job)
        text = text.replace("<body>\n", f"<body>\n{links}", 1)
        policy = f"{found[1]}; frame-ancestors 'none'"
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    async def _file(self, request: Request) -> Response:
        job, path = self._made(request)
        name = job.downloads[request.path_params["key"]][2]
        return FileResponse(path, media_type="application/octet-stream", filename=name)

    def _made(self, request: Request) -> tuple[Job, Path]:
        """Return a job and the file that an address asks for, by our own name of it."""
        job = _known(self._jobs.all, request.path_params["job"])
        _known(job.downloads, request.path_params["key"])
        path = job.file(request.path_params["key"])
        if not path.is_file():
            raise HTTPException(404)
        return job, path


def _known(these: Any, key: str) -> Any:
    """Return what is known by a key that an address holds."""
    if key not in these:
        raise HTTPException(404)
    return these[key]


def _kept(form: FormData, draft: Draft, fields: Any) -> bool:
    """Keep what was filled in; return whether there are new files of the form's main field."""
    new = False
    uploads: dict[str, list[Any]] = {}
    draft.values = {}
    for name, value in form.multi_items():
        if name not in fields:
            continue
        if not isinstance(value, UploadFile):
            draft.values.setdefault(name, []).append(value)
        elif value.filename:
            uploads.setdefault(name, []).append((value.filename, value.file))
    for role, files in uploads.items():
        draft.keep(role, files)
        new |= role == KINDS[draft.kind].main
    return new
