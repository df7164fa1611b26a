"""Where webhooks may lead: no way to spell an address leads to what hands out credentials."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.hooks.addresses import Target, Unfit, refusal, target_of
from tests.hooks.receiver import CANARY

OUTSIDE = Target("https", "hooks.example.org", 443, f"/{CANARY}")
HERE = Target("http", "localhost", 80, f"/{CANARY}")
METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "0.0.0.0",
    "0.1.2.3",
    "255.255.255.255",
    "224.0.0.1",
    "240.0.0.1",
]


def spelt(address: IPv4Address) -> list[str]:
    """Every way to say it in version 6 that some system carries to it."""
    n = int(address)
    return [
        str(address),
        f"::ffff:{address}",
        str(IPv6Address((0x0064FF9B << 96) | n)),
        str(IPv6Address((0x2002 << 112) | (n << 80))),
        str(IPv6Address((0x20010000 << 96) | (0xFFFFFFFF ^ n))),
        *([str(IPv6Address(n))] if n > 1 else []),
    ]


@pytest.mark.parametrize("address", METADATA)
def test_what_hands_out_credentials_is_refused_however_it_is_spelt(address: str):
    for text in spelt(ip_address(address)):  # type: ignore[arg-type]  # all of them are of version 4
        assert refusal(text, OUTSIDE), text
        assert refusal(text, HERE), text


@given(st.integers(0, 0xFFFF))
def test_all_of_link_local_is_refused(n: int):
    for text in spelt(IPv4Address((169 << 24 | 254 << 16) + n)):
        assert refusal(text, OUTSIDE)
    assert refusal(str(IPv6Address((0xFE80 << 112) + n)), OUTSIDE)
    assert refusal(f"{IPv6Address((0xFE80 << 112) + n)}%eth0", OUTSIDE)


@pytest.mark.parametrize("address", ["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "::", "ff02::1"])
def test_version_6_has_such_addresses_too(address: str):
    assert refusal(address, OUTSIDE) and refusal(address, HERE)


@pytest.mark.parametrize(
    "address",
    ["10.96.0.12", "172.16.3.4", "192.168.1.1", "100.64.0.7", "fd12:3456::1", "3.4.5.6", "2600::1", "64:ff9b::304:506"],
)
def test_receivers_in_a_cluster_and_outside_may_be_spoken_to(address: str):
    assert refusal(address, OUTSIDE) == ""


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
def test_this_machine_only_where_the_address_says_so(address: str):
    assert "this machine" in refusal(address, OUTSIDE)
    assert refusal(address, HERE) == ""


def test_a_name_for_this_machine_that_leads_elsewhere_is_refused():
    """Else http, which is allowed here alone, would carry what is told through the network."""
    assert "no address of this machine" in refusal("3.4.5.6", HERE)


GOOD = {
    "https://hooks.slack.com/services/T0/B0/xyz": ("https", "hooks.slack.com", 443, "/services/T0/B0/xyz"),
    "https://alerts.example.org:8443/x?token=a%20b": ("https", "alerts.example.org", 8443, "/x?token=a%20b"),
    "https://EXAMPLE.org": ("https", "example.org", 443, "/"),
    "http://localhost:9000/x": ("http", "localhost", 9000, "/x"),
    "http://127.0.0.1/x": ("http", "127.0.0.1", 80, "/x"),
    "http://[::1]:80/x": ("http", "::1", 80, "/x"),
}


@pytest.mark.parametrize("url", GOOD)
def test_an_address_is_taken_apart(url: str):
    made = target_of(url, allow_http=False)
    assert (made.scheme, made.host, made.port, made.path) == GOOD[url]
    assert made.path not in repr(made) or made.path == "/"


def test_the_header_names_a_port_only_where_it_is_another_one():
    assert target_of("https://a.example/x", allow_http=False).header == "a.example"
    assert target_of("https://a.example:444/x", allow_http=False).header == "a.example:444"
    assert target_of("http://[::1]/x", allow_http=False).header == "[::1]"


BAD = {
    f"ftp://a.example/{CANARY}": "no https URL",
    f"file:///etc/{CANARY}": "no https URL",
    f"gopher://169.254.169.254/{CANARY}": "no https URL",
    CANARY: "no https URL",
    f"https:///{CANARY}": "names no host",
    f"https://user:{CANARY}@a.example/": "a user or a password",
    f"https://{CANARY}@169.254.169.254/": "a user or a password",
    f"https://a.example\\@b.example/{CANARY}": "no URL",
    f"https://a.example/{CANARY}#x": "a # in it",
    f"https://a.example:0/{CANARY}": "names no host",
    f"https://a.example:99999/{CANARY}": "no URL",
    f"https://a.example:x/{CANARY}": "no URL",
    f"https://[::1/{CANARY}": "no URL",
    f"https://[fe80::1%25eth0]/{CANARY}": "names no host",
    f"https://a.example/{CANARY}\r\nHost: b": "no URL",
    f"https://a.example/{CANARY} x": "no URL",
    f"https://b\u00fccher.example/{CANARY}": "no URL",
    f"https://a.example/{CANARY}{'x' * 2000}": "no URL",
    f"http://a.example/{CANARY}": "allow_http",
    f"http://127.0.0.1.a.example/{CANARY}": "allow_http",
    f"http://localhost.a.example/{CANARY}": "allow_http",
}


@pytest.mark.parametrize("url", BAD, ids=range(len(BAD)))
def test_what_is_none_is_refused_without_a_word_of_it(url: str):
    with pytest.raises(Unfit, match=BAD[url]) as refused:
        target_of(url, allow_http=False)
    assert CANARY not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__suppress_context__ | (refused.value.__context__ is None)


@given(st.text(st.characters(max_codepoint=0x2FF), max_size=40), st.text("abc/?#@:[]\\%", max_size=12))
def test_whatever_stands_there_its_path_is_in_no_error(host: str, more: str):
    for url in (f"{host}{more}/{CANARY}", f"https://{host}{more}/{CANARY}", f"https://a.example/{CANARY}{host}{more}"):
        try:
            made = target_of(url, allow_http=True)
        except Unfit as error:
            assert CANARY not in str(error)
        else:
            assert CANARY not in repr(made) and made.path.startswith("/")


def test_http_to_other_machines_where_it_is_allowed():
    assert target_of("http://alerts.monitoring.svc/x", allow_http=True).scheme == "http"
