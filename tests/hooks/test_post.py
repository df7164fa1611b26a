"""One request, against real servers: what is dialled, what is followed, and what is told of what came back."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lifecycle.hooks import post as wire
from lifecycle.hooks.addresses import Target, target_of
from lifecycle.hooks.post import Answer, Undelivered, post
from tests.hooks.receiver import CANARY, Authority, Receiver, authority, listening, saying


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    pytest.importorskip("cryptography", reason="makes the certificates")
    return authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening() as made:
        yield made


@pytest.fixture
def metadata() -> Iterator[Receiver]:
    """Stands for what hands out credentials: nobody may speak to it."""
    with listening(host="127.0.0.2") as made:
        yield made
    assert made.got == []


def to(url: str) -> Target:
    return target_of(url, allow_http=False)


def leading(*addresses: str) -> Any:
    """Answers for any name, one address a call: the last one from then on."""
    left, asked = list(addresses), []

    def resolve(host: str, port: int, **_: object) -> Sequence[tuple[Any, ...]]:
        asked.append(host)
        address = left.pop(0) if len(left) > 1 else left[0]
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]

    resolve.asked = asked  # type: ignore[attr-defined]  # for the test to look at
    return resolve


def test_it_arrives(receiver: Receiver):
    assert post(to(receiver.url), b'{"a": 1}', {"X-More": "b"}) == Answer(200)
    ((path, headers, body),) = receiver.got
    assert path == f"/hook/{CANARY}?key={CANARY}" and body == b'{"a": 1}'
    assert headers["Host"] == f"localhost:{receiver.port}" and headers["Content-Type"] == "application/json"
    assert headers["X-More"] == "b" and headers["User-Agent"] == "lifecycle"


def test_it_arrives_by_tls(ours: Authority):
    with listening(ours.certified("localhost")) as receiver:
        assert post(to(receiver.url), b"{}", {}, ours.trusts).status == 200
        assert len(receiver.got) == 1


def test_an_authority_of_ones_own_by_the_variable_that_openssl_reads(ours: Authority, monkeypatch: pytest.MonkeyPatch):
    with listening(ours.certified("localhost")) as receiver:
        monkeypatch.setenv("SSL_CERT_FILE", str(ours.file))
        assert post(to(receiver.url), b"{}", {}).status == 200


def test_one_whom_nobody_vouches_for_sees_nothing(ours: Authority):
    with listening(ours.certified("localhost")) as receiver:
        with pytest.raises(Undelivered, match="not trusted: ") as failed:
            post(to(receiver.url), b"{}", {})
        assert receiver.got == [] and not failed.value.again


def test_a_certificate_of_another_name_is_none(ours: Authority):
    with listening(ours.certified("hooks.example.org")) as receiver:
        with pytest.raises(Undelivered, match="not trusted: its name is another one"):
            post(to(receiver.url), b"{}", {}, ours.trusts)
        assert receiver.got == []


def test_the_name_that_is_proven_is_the_one_that_was_asked_for(ours: Authority):
    """The address that was checked is dialled, and the certificate is still held against the name."""
    with listening(ours.certified("localhost")) as receiver:
        resolve = leading("127.0.0.1")
        assert post(to(receiver.url), b"{}", {}, ours.trusts, resolve).status == 200
        assert resolve.asked == ["localhost"], "one question: what is dialled is what was checked"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(receiver: Receiver, metadata: Receiver, status: int):
    receiver.answers = [(status, {"Location": f"http://127.0.0.2:{metadata.port}/latest/meta-data/"})]
    assert post(to(receiver.url), b"{}", {}).status == status
    assert len(receiver.got) == 1


@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254", "0.0.0.0"])
def test_a_name_that_leads_to_metadata_is_not_dialled(address: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(socket, "socket", _nobody)
    with pytest.raises(Undelivered, match=r"never spoken to|no single machine") as refused:
        post(to(f"https://hooks.example.org/{CANARY}"), b"{}", {}, resolve=leading(address))
    assert not refused.value.again and CANARY not in str(refused.value)


def _nobody(*_: object, **__: object) -> socket.socket:
    raise AssertionError("somebody was dialled")


def test_one_bad_address_spoils_all_of_a_name(receiver: Receiver, metadata: Receiver):
    def both(_host: str, port: int, **_: object) -> Sequence[tuple[Any, ...]]:
        return [(socket.AF_INET, 1, 6, "", (address, port)) for address in ("127.0.0.1", "169.254.169.254")]

    with pytest.raises(Undelivered, match="never spoken to"):
        post(to(receiver.url), b"{}", {}, resolve=both)
    assert receiver.got == []


def test_a_name_that_changes_its_mind_is_dialled_where_it_was_checked(receiver: Receiver):
    """Rebinding: checked as one address, it answers as another one to whoever asks again. Nobody asks again."""
    with listening(host="127.0.0.2") as other:
        resolve = leading("127.0.0.1", "127.0.0.2")
        assert post(to(receiver.url), b"{}", {}, resolve=resolve).status == 200
        assert other.got == [] and len(receiver.got) == 1


def test_a_public_name_for_this_machine_is_refused(receiver: Receiver):
    url = f"https://hooks.example.org:{receiver.port}/{CANARY}"
    with pytest.raises(Undelivered, match="this machine"):
        post(to(url), b"{}", {}, resolve=leading("127.0.0.1"))
    assert receiver.got == []


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518"])
def test_addresses_in_other_numbers_are_what_the_system_takes_them_for(host: str):
    with pytest.raises(Undelivered, match=r"never spoken to|not known"):
        post(to(f"https://{host}/{CANARY}"), b"{}", {})


def test_a_second_address_where_the_first_is_dead(receiver: Receiver):
    def two(_host: str, port: int, **_: object) -> Sequence[tuple[Any, ...]]:
        return [(socket.AF_INET, 1, 6, "", (address, port)) for address in ("127.0.0.3", "127.0.0.1")]

    assert post(to(receiver.url), b"{}", {}, resolve=two).status == 200


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Undelivered, match="Connection refused") as failed:
        post(to(f"http://127.0.0.1:{port}/{CANARY}"), b"{}", {})
    assert failed.value.again


def test_a_name_that_nobody_knows():
    def unknown(*_: object, **__: object) -> Sequence[tuple[Any, ...]]:
        raise socket.gaierror(socket.EAI_NONAME, f"no {CANARY}")

    with pytest.raises(Undelivered, match="its name is not known"):
        post(to("https://hooks.example.org/"), b"{}", {}, resolve=unknown)
    with pytest.raises(Undelivered, match="leads nowhere"):
        post(to("https://hooks.example.org/"), b"{}", {}, resolve=lambda *_, **__: [])


SLOW = {
    "says nothing": ([], 0.0),
    "says one sign at a time": ([bytes([sign]) for sign in b"HTTP/1.1 200 OK\r\n" * 99], 0.02),
    "goes on with headers": ([b"HTTP/1.1 200 OK\r\n", *[b"X-A: b\r\n"] * 99], 0.02),
    "says to go on for ever": ([b"HTTP/1.1 100 Continue\r\n\r\n"] * 99, 0.02),
}


@pytest.mark.parametrize("how", SLOW)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_one_that_takes_its_time_is_left(how: str, scheme: str, ours: Authority, monkeypatch: pytest.MonkeyPatch):
    """Each sign comes before any wait for the next one is over: only the time for all of it ends this."""
    monkeypatch.setattr(wire, "TOTAL_S", 0.3)
    words, pause_s = SLOW[how]
    with saying(words, pause_s) as port:
        with pytest.raises(Undelivered) as failed:
            post(to(f"{scheme}://localhost:{port}/{CANARY}"), b"{}", {}, ours.trusts)
        text = str(failed.value)
        assert text == "no answer within 0 s" or (scheme == "https" and text.startswith("TLS failed"))


@pytest.mark.parametrize(
    "words",
    [
        f"SSH-2.0-{CANARY}\r\n".encode(),
        f"HTTP/1.1 {CANARY} OK\r\n\r\n".encode(),
        f"HTTP/9.9 200 {CANARY}\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\n{CANARY}{'x' * 70_000}\r\n\r\n".encode(),
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    ],
)
def test_of_the_other_sides_words_nothing_is_told(words: bytes):
    with saying([words]) as port, pytest.raises(Undelivered) as failed:
        post(to(f"http://localhost:{port}/{CANARY}"), b"{}", {})
    assert CANARY not in str(failed.value) and "no HTTP" in str(failed.value)


def test_one_that_hangs_up(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        from threading import Thread

        def hang_up() -> None:
            connection, _ = server.accept()
            connection.recv(65536)
            connection.close()

        Thread(target=hang_up, daemon=True).start()
        with pytest.raises(Undelivered, match="it hung up") as failed:
            post(to(f"http://localhost:{server.getsockname()[1]}/{CANARY}"), b"{}", {})
        assert failed.value.again


@pytest.mark.parametrize(
    ("said", "meant"), [("7", 7), ("0", 0), ("-1", 0), ("\u0667", 0), ("999999999", 0), ("Wed", 0)]
)
def test_how_long_it_asks_to_wait(receiver: Receiver, said: str, meant: int):
    receiver.answers = [(429, {"Retry-After": said.encode("utf-8").decode("latin-1")})]
    assert post(to(receiver.url), b"{}", {}) == Answer(429, meant)


def test_proxies_of_the_environment_are_not_asked(
    receiver: Receiver, metadata: Receiver, monkeypatch: pytest.MonkeyPatch
):
    """A proxy would look the name up itself, after the check."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.2:{metadata.port}")
    assert post(to(receiver.url), b"{}", {}).status == 200
