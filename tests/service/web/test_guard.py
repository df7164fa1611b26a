"""Who is answered at all: by which name, with what method, token, origin and size; and what browsers are told."""

from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from lifecycle.service.web.guard import BODY_MAX, COOKIE, HEADERS
from tests.service.web.place import TOKEN, Place

PAGES = ("/", "/runs", "/upcoming", "/ticks", "/findings", "/login", "/static/style.css", "/nothing", "/api/v1/stores")
HEALTH = ("/healthz", "/readyz")
EVIL = ("evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1", "[::2]", "", "a b", "localhost:x")


@pytest.mark.parametrize("path", [*PAGES, *HEALTH])
def test_every_answer_tells_the_browser_what_it_may_do(place: Place, path: str):
    answer = place.client().get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert "script-src" not in policy, "no script is ever run"
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "server" not in answer.headers


@pytest.mark.parametrize("host", EVIL)
@pytest.mark.parametrize("token", ["", TOKEN], ids=["open", "locked"])
def test_a_foreign_name_is_not_answered(place: Place, host: str, token: str):
    """As after DNS rebinding: the page of another site asks us by its own name."""
    client = place.client(token)
    for path in (*PAGES, "/logout"):
        answer = client.get(path, headers={"host": host, "authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 421 and "hot" not in answer.text
    for path in HEALTH:
        assert client.get(path, headers={"host": host}).text == "ok\n"


OURS = ("localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "testserver", "me.example:7")


@pytest.mark.parametrize("host", OURS)
def test_names_of_its_own_are_answered(place: Place, host: str):
    client = place.client(host="testserver", hosts=("me.example",))  # "testserver" is where requests come in here
    assert client.get("/ticks", headers={"host": host}).status_code == 200


def test_a_name_with_a_port_is_that_port_alone(place: Place):
    client = place.client(hosts=("me.example:8443",))
    assert client.get("/ticks", headers={"host": "me.example:8443"}).status_code == 200
    assert client.get("/ticks", headers={"host": "me.example"}).status_code == 421


def test_two_names_at_once_are_none(place: Place):
    answer = place.client().get("/ticks", headers=[("host", "localhost"), ("host", "localhost")])
    assert answer.status_code == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
@pytest.mark.parametrize("path", [*PAGES, *HEALTH])
def test_nothing_can_be_changed(place: Place, method: str, path: str):
    if (method, path) == ("POST", "/login"):
        return
    answer = place.client().request(method, path, headers={"origin": "http://localhost"})
    assert answer.status_code == 405 and "GET, HEAD" in answer.headers["allow"]


def test_head_is_get_without_a_body(place: Place):
    for path in (*PAGES[:5], *HEALTH):
        answer = place.client().head(path)
        assert answer.status_code == 200 and not answer.content


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer"},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": TOKEN},
        {"cookie": f"{COOKIE}={TOKEN}"},
        {"cookie": f"{COOKIE}=9999999999.00"},
        {"cookie": 'a="; ;;='},
    ],
)
def test_without_the_token_nothing_is_told(place: Place, headers: dict[str, str]):
    client = place.client(TOKEN)
    for path in ("/api/v1/stores", "/api/v1/nothing"):
        answer = client.get(path, headers=headers)
        assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["error"]["code"] == "token_needed"
    for path in ("/", "/runs?q=a", "/nothing"):
        answer = client.get(path, headers=headers)
        assert answer.status_code == 303 and answer.headers["location"].startswith("login"), "and not what is there"
    for path in (*HEALTH, "/login", "/static/base.css", "/static/style.css"):
        assert client.get(path, headers=headers).status_code == 200


def test_a_token_in_the_address_is_no_token(place: Place):
    assert place.client(TOKEN).get(f"/api/v1/stores?token={TOKEN}").status_code == 401


def test_with_the_token_it_is_told(place: Place):
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert place.client(TOKEN).get("/api/v1/stores", headers=headers).json()["stores"][0]["name"] == "hot"
    assert place.client(TOKEN).get("/ticks", headers=headers).status_code == 200
    twice = [("authorization", f"Bearer {TOKEN}")] * 2
    assert place.client(TOKEN).get("/api/v1/stores", headers=twice).status_code == 401, "two may be read two ways"


def login(client: Any, token: str = TOKEN, **headers: str) -> Any:
    sent = {"origin": "http://localhost", **headers}
    return client.post("/login", data={"token": token, "next": "runs?q=a%20b"}, headers=sent)


def test_a_browser_logs_in_and_out(place: Place):
    client = place.client(TOKEN)
    form = client.get("/runs?q=a b").headers["location"]
    assert 'value="runs?q=a%20b"' in client.get(f"/{form}").text
    answer = login(client)
    assert answer.status_code == 303 and answer.headers["location"] == "runs?q=a%20b"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie and TOKEN not in cookie
    assert client.get("/runs").status_code == 200 and client.get("/api/v1/stores").status_code == 200
    assert client.post("/logout", headers={"origin": "http://localhost"}).headers["location"] == "login"
    assert client.get("/runs").status_code == 303


def test_over_tls_the_cookie_stays_there(place: Place):
    assert "Secure" in login(place.client(TOKEN), origin="https://localhost").headers["set-cookie"]


@pytest.mark.parametrize("given", ["", "wrong", TOKEN[:-1], TOKEN + "x", "\udcff"])
def test_a_wrong_token_opens_nothing(place: Place, given: str):
    answer = place.client(TOKEN).post(
        "/login", content=f"token={given}".encode("utf-8", "surrogateescape"), headers={"origin": "http://localhost"}
    )
    assert answer.status_code == 403 and "set-cookie" not in answer.headers and "not the token" in answer.text


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://localhost:81", "http://localhost.evil.example", "file://"]
)
def test_a_form_of_another_site_is_refused(place: Place, origin: str):
    for path in ("/login", "/logout"):
        sent = {"origin": origin} if origin else {}
        answer = place.client(TOKEN).post(path, data={"token": TOKEN}, headers=sent)
        assert answer.status_code == 403 and "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "https://evil.example", "javascript:alert(1)", "/\\evil", "runs\n", "..//x", "logout"]
)
def test_login_leads_nowhere_else(place: Place, wanted: str):
    sent = {"origin": "http://localhost"}
    answer = place.client(TOKEN).post("/login", data={"token": TOKEN, "next": wanted}, headers=sent)
    assert answer.status_code == 303 and answer.headers["location"] == "./"
    assert wanted not in place.client(TOKEN).get("/login", params={"next": wanted}).text


def test_what_is_too_large_is_not_read(place: Place):
    client, sent = place.client(TOKEN), {"origin": "http://localhost"}
    assert client.post("/login", content=b"t" * (BODY_MAX + 1), headers=sent).status_code == 413

    async def pieces() -> Any:
        for piece in [b"token=", *[b"t" * 1000] * 10]:
            yield piece

    assert client.post("/login", content=pieces(), headers=sent).status_code == 413, "nor where no length is told"
    assert client.get("/runs?q=" + "a" * 9000).status_code == 414
    wrong = {**sent, "content-length": "-1"}
    assert client.post("/login", content=b"", headers=wrong).status_code == 413
