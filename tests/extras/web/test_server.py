"""The server as a process: its folder, its memory, its jobs, its end by Ctrl-C and by a kill."""

import asyncio
import contextlib
import errno
import io
import itertools
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx2
import psutil
import pytest
from opened import HERE, PORT, TOKEN, Page
from processes import heed_interrupts
from starlette.testclient import TestClient

from ldpaudit.extras.web.drafts import Draft, harmless
from ldpaudit.extras.web.jobs import work
from ldpaudit.extras.web.server import HEAD_SECONDS

Start = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def start(tmp_path):
    """Start ``ldpaudit open`` with a folder for temporary files; return it and its address."""
    running = []
    (tmp_path / "tmp").mkdir()

    def starting(*words, browser=False, program=("-m", "ldpaudit")):
        command = [sys.executable, *program, "open", *words]
        command += [] if browser else ["--no-browser"]
        # Each job tries seeds for minutes before it could end.
        own = {"TMPDIR": str(tmp_path / "tmp"), "LDPAUDIT_SEEDS_TRIED": str(1 << 32)}
        server = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | own,
            preexec_fn=heed_interrupts,
        )
        running.append(server)
        line = server.stdout.readline()
        return server, re.findall(r"http://127\.0\.0\.1:\d+/[\w-]{32}/\S*", line)[0]

    yield starting
    for server in running:
        server.kill()
        server.communicate()


def until(true):
    """Wait for something, a minute at most: a machine may be busy."""
    for _ in range(1200):
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError("it does not happen")


def folders(place):
    return [*place.glob("ldpaudit-scratch-*")]


def client_of(address):
    origin = "/".join(address.split("/")[:3])
    headers = {"Origin": origin}
    return httpx2.Client(base_url=address, headers=headers, follow_redirects=True, timeout=30)


def raw(address):
    """Return requests that no client library sends."""
    _, _, host, token, _ = address.split("/")
    own = f"Host: {host}\r\nOrigin: http://{host}\r\n"
    heads = [
        f"GET /{token}/ HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n",
        f"GET /{token}/ HTTP/1.1\r\n{own}Origin: http://evil.example\r\n",
        f"GET /{token}/ HTTP/1.0\r\n",
        f"GET http://evil.example/{token}/ HTTP/1.1\r\nHost: evil.example\r\n",
        f"GET //{token}/ HTTP/1.1\r\n{own}",
        f"OPTIONS * HTTP/1.1\r\n{own}",
        f"POST /{token}/end HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n",
        f"GET /wrong/ HTTP/1.1\r\n{own}Connection: Upgrade\r\nUpgrade: websocket\r\n",
        f"\x00GET /{token}/ HTTP/1.1\r\n{own}",
    ]
    return [f"{head}\r\n".encode() for head in heads]


def answer_to(address, request):
    place = address.split("/")[2].split(":")
    with socket.create_connection((place[0], int(place[1])), timeout=10) as line:
        line.sendall(request)
        return line.recv(1 << 16)


def test_its_folder_goes_with_it_and_after_a_kill_at_the_next_start(start, tmp_path, release):
    server, address = start()
    (folder,) = folders(tmp_path / "tmp")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert psutil.Process(server.pid).memory_info().rss < 250 << 20
    (listening,) = psutil.Process(server.pid).net_connections("inet")
    assert listening.laddr.ip == "127.0.0.1"
    for request in raw(address):
        assert answer_to(address, request).partition(b"\r\n")[0].split()[1:2] in (
            [b"400"],
            [b"403"],
        )
    with client_of(address) as client:
        form = client.post("audit", files={"release": (release[0].name, release[0].read_bytes())})
        job = client.post(form.url, data={"label": "label"})
        assert 'id="progress"' in job.text
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in folder.glob("*/"))
    worker = until(lambda: psutil.Process(server.pid).children())[0]  # A closed tab: it goes on.
    server.kill()
    until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
    assert folder.is_dir()
    server, _ = start()
    assert not folder.exists()
    (other,) = folders(tmp_path / "tmp")
    server.send_signal(signal.SIGINT)
    said, _ = server.communicate(timeout=60)
    assert server.returncode == 0
    assert "nothing was kept" in said
    assert not other.exists()


def test_a_job_is_stopped_the_next_one_waits_and_the_page_ends_it_all(start, tmp_path, release):
    server, address = start(str(release[0]))
    base = "/".join(address.split("/")[:4]) + "/"
    with client_of(base) as client:
        form = client.get(address)
        assert "release.parquet" in form.text
        jobs = [client.post(form.url, data={"label": "label"}) for _ in range(2)]
        assert "Waiting for an earlier job" in jobs[1].text
        until(lambda: "Starting" not in client.get(jobs[0].url).text)
        process = psutil.Process(server.pid).children()[0]
        until(lambda: "It was stopped" in client.post(f"{jobs[0].url}/stop").text)
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        until(lambda: "Waiting" not in client.get(jobs[1].url).text)
        assert "stopped" in client.get(base).text
        child = until(lambda: psutil.Process(server.pid).children())[0]
        assert "has ended" in client.post("end").text
    said, _ = server.communicate(timeout=60)
    assert "Audit of release.parquet: stopped after" in said
    until(lambda: not child.is_running())
    assert folders(tmp_path / "tmp") == []


def test_the_browser_is_started_with_a_file_that_others_cannot_read(start, tmp_path, monkeypatch):
    """Its address is on no command line: other users may read those."""
    told, program = tmp_path / "told", tmp_path / "browser.py"
    program.write_text(f"import sys; open({str(told)!r}, 'w').write(sys.argv[1] + chr(10))")
    monkeypatch.setenv("BROWSER", f"{sys.executable} {program} %s")
    _, address = start("--port", "0", browser=True)
    door = Path(until(lambda: told.exists() and told.read_text()).strip().removeprefix("file://"))
    assert address in door.read_text()
    assert stat.S_IMODE(door.stat().st_mode) == 0o600


def test_a_port_that_is_taken_and_a_size_that_is_none(command):
    status, _, said = command("open", "--port", "99999999", "--no-browser")
    assert (status, said.count("\n")) == (2, 1)
    assert "--port must be from 0 to 65535" in said
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, _, said = command("open", "--port", taken.getsockname()[1], "--no-browser")
    assert (status, said.count("\n")) == (2, 1)
    assert "cannot be used: address already in use" in said
    assert command("open", "--memory", "much", "--no-browser")[0] == 2


def test_without_its_server_one_line_says_what_to_install(command, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    status, _, said = command("open")
    assert (status, said.count("\n")) == (2, 1)
    assert "starlette, uvicorn and python-multipart" in said


HOSTS = ("evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", f"127.0.0.2:{PORT}",
         f"localhost.evil.example:{PORT}", f"0.0.0.0:{PORT}", "[::1]", "")  # fmt: skip
ORIGINS = ("http://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1",
           f"http://localhost:{PORT}", f"http://127.0.0.1:{PORT}.evil.example", "")  # fmt: skip
TOKENS = ("", "A-TOKEN", "a-toke", "a-token2", "a%2Dtoken%00", "ä-token", "..", "static", "*")
PLACES = ("", "audit", "end", "static/open.js", "job/x/page/page")


def attacks():
    """Return method, path and headers of requests of others."""
    made = []
    for method, place in itertools.product(("GET", "POST"), PLACES):
        path = f"/{TOKEN}/{place}"
        own = {"Origin": HERE}
        made += [(method, path, {"Host": host, "Origin": f"http://{host}"}) for host in HOSTS]
        made += [(method, path, {"Origin": origin}) for origin in ORIGINS]
        made += [(method, f"/{token}/{place}", own) for token in TOKENS]
    made += [("POST", f"/{TOKEN}/{place}", {}) for place in PLACES]
    made += [("POST", f"/{TOKEN}/end", {"Origin": HERE, "Sec-Fetch-Site": "cross-site"})]
    return made


def test_no_request_of_others_is_answered(page):
    ended = []
    page.site.end = lambda: ended.append(True)
    tried = attacks()
    assert len(tried) >= 200
    for method, path, headers in tried:
        answer = page.client.request(method, path, headers=headers)
        assert (answer.status_code, answer.text) == (403, ""), (method, path, headers)
    assert not ended
    assert page.get().status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "static/../site.py", "static/%2e%2e/site.py", "static/..%2fsite.py", "static//etc/passwd",
        "job/../../etc/passwd/page/page", "job/%2e%2e/file/page", "audit/%2e%2e%2fetc",
        "job/x/file/..%2f..%2fresult.json", "nothing", "release/x", "job/x/stop",
    ],
)  # fmt: skip
def test_no_path_leads_out(page, path):
    assert page.client.get(f"/{TOKEN}/{path}").status_code in (403, 404, 405)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("../../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/shadow", "shadow"),
        ("..", "file"),
        ("", "file"),
        ("-rf.csv", "rf.csv"),
        (".bashrc", "bashrc"),
        ("a*?[b].csv", "a___b_.csv"),
        ("x\n--html=y.csv", "x_--html=y.csv".replace("=", "_")),
        ("Jahr 2025 (neu).csv", "Jahr 2025 (neu).csv"),
        ("größe.csv", "größe.csv"),
        ("a" * 300 + ".parquet", "a" * 52 + ".parquet"),
        ("https://evil.example/a.csv", "a.csv"),
    ],
)
def test_names_of_uploads_are_made_harmless(name, own):
    assert harmless(name) == own


def test_files_stay_in_the_folder(page, release, tmp_path):
    content = release[0].read_bytes()
    page.client.post(
        f"/{TOKEN}/audit",
        files={"release": ("../../../evil.parquet", content)},
        headers={"Origin": HERE},
    )
    inside = tmp_path / "scratch"
    found = [path for path in tmp_path.rglob("*evil*") if not path.is_relative_to(inside)]
    assert found == []
    assert [*inside.rglob("evil.parquet")] != []


def test_what_is_sent_cannot_name_a_file_of_the_server(page, release):
    """A text in the place of a file, a policy elsewhere, code as an attack: none is a word."""
    form = page.post("audit", {"release": release[0]})
    secret = "/etc/passwd"
    told = {"truth": secret, "original": secret, "policy": secret, "channel": secret,
            "attacks": "/tmp/evil.py:Evil", "html": secret, "json": secret, "release": secret,
            "cluster": "tls://evil.example:1", "label": f"x:channel={secret}"}  # fmt: skip
    answer = page.finished(page.post(str(form.url), **told))
    (job,) = page.site._jobs.values()
    assert secret not in job.command.replace(f'"x:channel={secret}"', "")
    assert "evil" not in job.command
    assert "x:channel=" in answer.text  # The name of a column, which is not there.


def test_an_upload_is_held_to_the_memory(here, tmp_path, page):
    small = Page(page.site._scratch, most=20_000)
    big = tmp_path / "big.csv"
    big.write_text("label,x\n" + "a,1\n" * 10_000)
    with small.client:
        answer = small.post("audit", {"release": big})
        assert answer.status_code == 413
        assert "more than may be uploaded" in answer.text
        assert [*small.site._scratch.rglob("big.csv")] == []
        much = {
            "Origin": HERE,
            "Content-Length": "99000000000",  # Next to nothing of it comes.
            "Content-Type": "application/x-www-form-urlencoded",
        }
        told = small.client.post(f"/{TOKEN}/audit", content=b"a=b", headers=much)
        assert told.status_code == 413
        few = tmp_path / "few.csv"
        few.write_text("label,x\n" + "a,1\n" * 2_000)
        assert small.post("audit", {"release": few}).status_code == 200
        assert small.post("audit", {"release": few}).status_code == 200
        assert small.post("audit", {"release": few}).status_code == 413  # The two are still there.


def test_every_answer_says_what_a_page_may_do(page):
    for place in ("", "audit", "static/report.css", "static/open.js", "nothing"):
        headers = page.get(place).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_markup_in_names_and_values_is_text(page, tmp_path):
    table = tmp_path / "<img src=x onerror=alert(1)>.csv"
    table.write_text('"<script>alert(1)</script>",label\n' + "1,a\n2,b\n" * 30)
    form = page.post("audit", {"release": table})
    assert "<script>alert" not in form.text
    assert "<img src=x" not in form.text
    assert "&lt;script&gt;alert" in form.text
    again = page.post(str(form.url), epsilon='"><script>alert(2)</script>')
    assert "<script>alert" not in page.finished(again).text


def test_what_others_put_into_a_form_harms_nobody(page, release):
    """Bytes that no command takes, and names that a disk cannot hold or cannot tell apart."""
    form = page.post("audit", {"release": release[0]})
    answer = page.finished(page.post(str(form.url), epsilon="1\0--html=/tmp/x", drop="\0"))
    assert "Internal fault" not in answer.text
    assert page.post(str(form.url), epsilon="1" * (1 << 21)).status_code == 400
    for body in (b"", b"--x", b"--x\r\nContent-Disposition: form-data\r\n\r\n\r\n--x--"):
        head = {"Origin": HERE, "Content-Type": "multipart/form-data; boundary=x"}
        sent = page.client.post(f"/{TOKEN}/audit", content=body, headers=head)
        assert sent.status_code in (200, 400)
    names = (
        "漢" * 90 + ".csv",
        "json.py",
        "A.csv",
        "a.csv",
        "a.csv",
        "\ud800.csv".encode("utf-16", "surrogatepass").decode("latin-1"),
    )
    files = [("release", (name, b"label,x\na,1\n")) for name in names]
    assert (
        page.client.post(f"/{TOKEN}/audit", files=files, headers={"Origin": HERE}).status_code
        == 200
    )
    (draft,) = [
        one for one in page.site._drafts.values() if len(one.files.get("release", ())) == len(names)
    ]
    own = draft.files["release"]
    assert len({name.casefold() for name in own}) == len(names)
    assert all(len(name.encode()) < 250 for name in own)


def test_nothing_is_imported_from_the_files(tmp_path, monkeypatch):
    """A file called as a module, in the folder where commands run, with an odd PYTHONPATH."""
    folder = tmp_path / "draft"
    folder.mkdir()
    for name in ("json.py", "numpy.py", "sitecustomize.py", "ldpaudit.py"):
        (folder / name).write_text("raise SystemExit(99)")
    paths = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f":{paths}:")
    table = folder / "table.csv"
    table.write_text("label,x\n" + "a,1\nb,2\n" * 30)
    heard = []
    looking = work(["look", str(tmp_path / "found"), "table.csv"], folder, heard.append)
    with ThreadPoolExecutor(1) as apart:  # The browser of other tests has a loop in this thread.
        status = apart.submit(asyncio.run, looking).result()
    assert (status, heard) == (0, [])
    assert "columns" in (tmp_path / "found").read_text()


def test_a_form_in_no_real_encoding_is_refused_in_a_line(page):
    body = b'--x\r\nContent-Disposition: form-data; name="label"\r\n\r\na\r\n--x--\r\n'
    kind = "multipart/form-data; boundary=x; charset=undefined"
    answer = page.client.post(
        f"/{TOKEN}/audit", content=body, headers={"Content-Type": kind, "Origin": HERE}
    )
    assert answer.status_code == 400
    assert "Internal" not in answer.text


def test_a_worker_takes_long_words_and_shows_none_of_them(tmp_path):
    """Its command line is read by every user of the computer, and holds 128 KiB at most."""
    column, seen, said = "secret-column-" + "x" * 300_000, [], []

    async def look():
        words = ["run", "none.csv", f"--label={column}", "--epsilon=1"]
        job = SimpleNamespace(process=None)

        def heard(line):
            said.append(line)
            for folder in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    seen.append((folder / "cmdline").read_bytes())

        return await work(words, tmp_path, heard, job)

    assert asyncio.run(look()) == 2
    assert len(said) == 1
    assert any(b"ldpaudit.extras.web.worker" in one for one in seen)
    assert not any(b"secret-column" in one or b"none.csv" in one for one in seen)


def test_a_file_and_its_declaration_stay_together_when_both_come_again(tmp_path):
    draft = Draft("audit", tmp_path)
    for expected in ("", "2-"):
        draft.keep("release", [("a.csv", io.BytesIO(b"1")), ("a.csv.ldpaudit.json", io.BytesIO())])
        assert draft.files["release"] == [f"{expected}a.csv", f"{expected}a.csv.ldpaudit.json"]


SOON_TIRED = """from ldpaudit.__main__ import main
from ldpaudit.extras.web import server

server.HEAD_SECONDS = 3.0
main()
"""
"""The program, with a server that waits less for the rest of a request."""


def test_half_requests_of_others_do_not_shut_the_page(start):
    assert HEAD_SECONDS <= 10
    server, address = start(program=("-c", SOON_TIRED))
    host, port = address.split("/")[2].split(":")
    idle = []
    for _ in range(300):
        one = socket.create_connection((host, int(port)))
        one.sendall(b"GET / HTTP/1.1\r\nHost: ")
        idle.append(one)
    began = time.monotonic()
    with client_of(address) as browser:
        assert browser.get("").status_code == 200
    assert time.monotonic() - began < 5
    descriptors = len([*Path(f"/proc/{server.pid}/fd").iterdir()])
    assert descriptors < 150
    time.sleep(4)
    for one in idle:  # Nobody waits for them any longer.
        one.settimeout(2)
        with contextlib.suppress(ConnectionError):
            assert one.recv(1) == b""
        one.close()


def test_two_uploads_at_a_time_have_one_room(page):
    """What is still coming counts, too."""
    small = Page(page.site._scratch, most=30_000)
    small.app._coming = 25_000
    with small.client:
        answer = small.client.post(
            f"/{TOKEN}/audit", files={"release": ("a.csv", b"x" * 10_000)}, headers={"Origin": HERE}
        )
    assert (answer.status_code, small.app._coming) == (413, 25_000)


def test_a_full_disk_is_said_in_a_line(page, release, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/secret/place")

    monkeypatch.setattr("shutil.copyfileobj", full)
    page.client = TestClient(page.app, base_url=HERE, raise_server_exceptions=False)
    answer = page.post("audit", {"release": release[0]})
    assert answer.status_code == 500
    assert "could not be done: no space left on device." in answer.text
    assert "secret" not in answer.text
    assert ([*page.site._scratch.rglob("*.parquet")], page.get().status_code) == ([], 200)
