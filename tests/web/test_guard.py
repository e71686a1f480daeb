"""Nobody else gets in: of the requests without token, Host or Origin, none is answered."""

import itertools
from pathlib import Path

import pytest
from opened import HERE, PORT, TOKEN, Page

from ldpaudit.web.drafts import harmless

HOSTS = ("evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", f"127.0.0.2:{PORT}",
         f"localhost.evil.example:{PORT}", f"0.0.0.0:{PORT}", "[::1]", "")  # fmt: skip
ORIGINS = ("http://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1",
           f"http://localhost:{PORT}", f"http://127.0.0.1:{PORT}.evil.example", "")  # fmt: skip
TOKENS = ("", "A-TOKEN", "a-toke", "a-token2", "a%2Dtoken%00", "ä-token", "..", "static", "*")
PLACES = ("", "audit", "end", "static/open.js", "job/x/page/page")


def attacks() -> list[tuple[str, str, dict[str, str]]]:
    """Return method, path and headers of requests of others."""
    made: list[tuple[str, str, dict[str, str]]] = []
    for method, place in itertools.product(("GET", "POST"), PLACES):
        path = f"/{TOKEN}/{place}"
        own = {"Origin": HERE}
        made += [(method, path, {"Host": host, "Origin": f"http://{host}"}) for host in HOSTS]
        made += [(method, path, {"Origin": origin}) for origin in ORIGINS]
        made += [(method, f"/{token}/{place}", own) for token in TOKENS]
    made += [("POST", f"/{TOKEN}/{place}", {}) for place in PLACES]
    made += [("POST", f"/{TOKEN}/end", {"Origin": HERE, "Sec-Fetch-Site": "cross-site"})]
    return made


def test_no_request_of_others_is_answered(page: Page) -> None:
    ended: list[bool] = []
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
def test_no_path_leads_out(page: Page, path: str) -> None:
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
        ("a" * 300 + ".parquet", "a" * 72 + ".parquet"),
        ("https://evil.example/a.csv", "a.csv"),
    ],
)
def test_names_of_uploads_are_made_harmless(name: str, own: str) -> None:
    assert harmless(name) == own


def test_files_stay_in_the_folder(page: Page, release: tuple[Path, Path], tmp_path: Path) -> None:
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


def test_what_is_sent_cannot_name_a_file_of_the_server(
    page: Page, release: tuple[Path, Path]
) -> None:
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


def test_an_upload_is_held_to_the_memory(here: None, tmp_path: Path, page: Page) -> None:
    small = Page(page.site._scratch, most=20_000)
    big = tmp_path / "big.csv"
    big.write_text("label,x\n" + "a,1\n" * 10_000)
    with small.client:
        answer = small.post("audit", {"release": big})
        assert answer.status_code == 413
        assert "more than may be uploaded" in answer.text
        assert [*small.site._scratch.rglob("big.csv")] == []
        few = tmp_path / "few.csv"
        few.write_text("label,x\n" + "a,1\n" * 2_000)
        assert small.post("audit", {"release": few}).status_code == 200
        assert small.post("audit", {"release": few}).status_code == 200
        assert small.post("audit", {"release": few}).status_code == 413  # The two are still there.


def test_every_answer_says_what_a_page_may_do(page: Page) -> None:
    for place in ("", "audit", "static/report.css", "static/open.js", "nothing"):
        headers = page.get(place).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_markup_in_names_and_values_is_text(page: Page, tmp_path: Path) -> None:
    table = tmp_path / "<img src=x onerror=alert(1)>.csv"
    table.write_text('"<script>alert(1)</script>",label\n' + "1,a\n2,b\n" * 30)
    form = page.post("audit", {"release": table})
    assert "<script>alert" not in form.text
    assert "<img src=x" not in form.text
    assert "&lt;script&gt;alert" in form.text
    again = page.post(str(form.url), epsilon='"><script>alert(2)</script>')
    assert "<script>alert" not in page.finished(again).text
