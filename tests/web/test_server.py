"""The server as a process: its folder, its memory, its jobs, its end by Ctrl-C and by a kill."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

Start = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start ``ldpaudit open`` with a folder for temporary files; return it and its address."""
    running = []
    (tmp_path / "tmp").mkdir()

    def starting(*words: str, browser: bool = False) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "ldpaudit", "open", *words]
        command += [] if browser else ["--no-browser"]
        # Each job tries seeds for minutes before it could end.
        own = {"TMPDIR": str(tmp_path / "tmp"), "LDPAUDIT_SEEDS_TRIED": str(1 << 32)}
        server = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | own,
        )
        running.append(server)
        assert server.stdout is not None
        line = server.stdout.readline()
        return server, re.findall(r"http://127\.0\.0\.1:\d+/[\w-]{32}/\S*", line)[0]

    yield starting
    for server in running:
        server.kill()
        server.communicate()


def until(true: Callable[[], Any]) -> Any:
    """Wait for something, ten seconds at most."""
    for _ in range(200):
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError("it does not happen")


def folders(place: Path) -> list[Path]:
    return [*place.glob("ldpaudit-scratch-*")]


def client_of(address: str) -> httpx2.Client:
    origin = "/".join(address.split("/")[:3])
    headers = {"Origin": origin}
    return httpx2.Client(base_url=address, headers=headers, follow_redirects=True, timeout=30)


def raw(address: str) -> list[bytes]:
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


def answer_to(address: str, request: bytes) -> bytes:
    place = address.split("/")[2].split(":")
    with socket.create_connection((place[0], int(place[1])), timeout=10) as line:
        line.sendall(request)
        return line.recv(1 << 16)


def test_its_folder_goes_with_it_and_after_a_kill_at_the_next_start(
    start: Start, tmp_path: Path, release: tuple[Path, Path]
) -> None:
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


def test_a_job_is_stopped_the_next_one_waits_and_the_page_ends_it_all(
    start: Start, tmp_path: Path, release: tuple[Path, Path]
) -> None:
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


def test_the_browser_is_started_with_a_file_that_others_cannot_read(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address is on no command line: other users may read those."""
    told, program = tmp_path / "told", tmp_path / "browser.py"
    program.write_text(f"import sys; open({str(told)!r}, 'w').write(sys.argv[1] + chr(10))")
    monkeypatch.setenv("BROWSER", f"{sys.executable} {program} %s")
    _, address = start("--port", "0", browser=True)
    door = Path(until(lambda: told.exists() and told.read_text()).strip().removeprefix("file://"))
    assert address in door.read_text()
    assert stat.S_IMODE(door.stat().st_mode) == 0o600


def test_a_port_that_is_taken_and_a_size_that_is_none(command: Any) -> None:
    status, _, said = command("open", "--port", "99999999", "--no-browser")
    assert (status, said.count("\n")) == (2, 1)
    assert "--port must be from 0 to 65535" in said
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, _, said = command("open", "--port", taken.getsockname()[1], "--no-browser")
    assert (status, said.count("\n")) == (2, 1)
    assert "cannot be used: address already in use" in said
    assert command("open", "--memory", "much", "--no-browser")[0] == 2


def test_without_the_extra_one_line_says_what_to_install(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    status, _, said = command("open")
    assert (status, said.count("\n")) == (2, 1)
    assert "pip install 'ldpaudit[web]'" in said
