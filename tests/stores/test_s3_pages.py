"""The page parser against the XML parser, on generated pages of every shape."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote_plus
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.stores import s3_pages
from lifecycle.stores.s3_pages import Page, Unreadable, parse, to_ns

NS = "http://s3.amazonaws.com/doc/2006-03-01/"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Object(NamedTuple):
    key: str
    size: int
    time: datetime
    etag: str
    storage: str


objects = st.builds(
    Object,
    # Everything that UTF-8 can hold, and often what XML and percent-encoding care about.
    st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("%+&<>\"'/;#x20\n\r\t ")), min_size=1, max_size=30),
    st.integers(0, 50 * 10**12),
    st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    st.from_regex(r"[0-9a-f]{32}(-[1-9][0-9]{0,3})?", fullmatch=True),
    st.sampled_from(["STANDARD", "GLACIER", "STANDARD_IA", ""]),
)


def xml_key(key: str, url: bool, plus: bool, numeric: bool) -> str:
    if url:
        key = quote_plus(key, safe="/*") if plus else quote(key, safe="/")
    if numeric:
        return "".join(f"&#{ord(c)};" if c in "&<>\"'\r" else c for c in key)
    return escape(key, {'"': "&quot;", "'": "&apos;", "\r": "&#xD;"})


@st.composite
def pages(draw: st.DrawFn) -> tuple[bytes, list[Object], bool]:
    """A page, what it holds, and whether its keys are percent-encoded."""
    url = draw(st.booleans())
    found = draw(st.lists(objects, max_size=8))
    if not url:  # what XML 1.0 cannot hold comes only encoded
        found = [o for o in found if all(c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff") for c in o.key)]
    plus, numeric, spaced = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    order = draw(st.sampled_from(["aws", "weed", "ceph"]))
    quoted = draw(st.sampled_from(["&quot;", "&#34;", '"']))
    rows = []
    for o in found:
        fraction = draw(st.sampled_from(["", ".000", f".{o.time.microsecond:06}"]))
        key = f"<Key>{xml_key(o.key, url, plus, numeric)}</Key>"
        time = f"<LastModified>{o.time:%Y-%m-%dT%H:%M:%S}{fraction}Z</LastModified>"
        etag = f"<ETag>{quoted}{o.etag}{quoted}</ETag>"
        size = f"<Size>{o.size}</Size>"
        storage = f"<StorageClass>{o.storage}</StorageClass>" if o.storage else ""
        check = "<ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType>"
        owner = "<Owner><ID>7f</ID><DisplayName>a &amp; b</DisplayName></Owner>"
        parts = {
            "aws": [key, time, etag, draw(st.sampled_from(["", check])), size, storage],
            "weed": [key, etag, size, storage, time],
            "ceph": [key, time, etag, size, storage, owner],
        }[order]
        rows.append("<Contents>" + ("\n  " if spaced else "").join(parts) + "</Contents>")
    head = f"<Name>b</Name><Prefix/><KeyCount>{len(found)}</KeyCount><IsTruncated>true</IsTruncated>"
    head += "<EncodingType>url</EncodingType>" if url else ""
    tail = "<NextContinuationToken>a&amp;b</NextContinuationToken>"
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="{NS}">'
    body += head + "".join(rows) + tail if draw(st.booleans()) else "".join(rows) + head + tail
    return (body + "</ListBucketResult>").encode(), found, url


def by_the_book(body: bytes) -> tuple[list[tuple[str, int, str, str]], str]:
    """The same by the XML parser alone: key, size, ETag and storage class; and the token."""
    root, ns = ET.fromstring(body), f"{{{NS}}}"
    url = root.findtext(f"{ns}EncodingType") == "url"
    rows = []
    for item in root.iter(f"{ns}Contents"):
        key, size, etag, storage = (item.findtext(ns + tag) or "" for tag in ("Key", "Size", "ETag", "StorageClass"))
        rows.append((unquote_plus(key) if url else key, int(size), etag.strip('"'), storage))
    return rows, root.findtext(f"{ns}NextContinuationToken") or ""


def columns(page: Page) -> list[tuple[str, int, str]]:
    return list(zip(page.keys, page.sizes, page.etags, strict=True))


@given(pages())
def test_a_page_is_read_as_the_xml_parser_reads_it(made: tuple[bytes, list[Object], bool]):
    body, found, _ = made
    page, stub = parse(body)
    expected, token = by_the_book(body)
    assert columns(page) == [row[:3] for row in expected] == [(o.key, o.size, o.etag) for o in found]
    assert page.mtimes_ns == [(o.time.replace(microsecond=0) - EPOCH) // timedelta(seconds=1) * 10**9 for o in found]
    odd = {k: c for k, _, _, c in expected if c not in ("", "STANDARD")}
    assert set(page.classes) <= set(page.keys) and page.classes == odd
    assert by_the_book(stub) == ([], token), "what is left for botocore is the page without its objects"
    assert b"<Contents" not in stub


@given(pages(), st.data())
def test_a_page_that_was_cut_is_never_read(made: tuple[bytes, list[Object], bool], data: st.DataObject):
    body = made[0]
    with pytest.raises(Unreadable):
        parse(body[: data.draw(st.integers(0, len(body) - 1))])


@given(pages())
def test_the_quick_way_agrees_with_the_slow_one(made: tuple[bytes, list[Object], bool]):
    quick = s3_pages._quick(made[0])
    if quick is not None:
        assert quick[0] == s3_pages._slow(made[0])[0]


def test_what_aws_writes_goes_the_quick_way():
    from bench.s3_replay import listing

    for body in listing(pages=2, keys=50):
        assert s3_pages._quick(body) is not None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<Key>k</Key>", "<Key></Key>"),
        ("<Key>k</Key>", ""),
        ("<Size>1</Size>", ""),
        ("<Size>1</Size>", "<Size>one</Size>"),
        ("2026-01-02T03:04:05.000Z", "yesterday"),
        ("<Key>k</Key>", "<Key>k&nbsp;</Key>"),
        ("<Key>k</Key>", "<Key>k\x01</Key>"),
        ("<Key>k</Key>", "<Key>k&#1;</Key>"),
    ],
)
def test_an_object_that_tells_too_little_spoils_the_page(before: str, after: str):
    good = (
        "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>k</Key>"
        "<LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>e</ETag><Size>1</Size></Contents></ListBucketResult>"
    )
    assert columns(parse(good.encode())[0]) == [("k", 1, "e")]
    with pytest.raises(Unreadable):
        parse(good.replace(before, after).encode())


def test_an_error_in_disguise_is_left_to_the_client():
    body = b"<Error><Code>InternalError</Code></Error>"
    assert parse(body) == (Page([], [], [], [], {}), body)


def test_names_that_are_not_utf8_survive():
    row = "<Key>a%FFb</Key><LastModified>2026-01-02T03:04:05Z</LastModified><ETag>e</ETag><Size>1</Size>"
    head = "<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
    body = f"<ListBucketResult>{head}<Contents>{row}</Contents></ListBucketResult>"
    (key,) = parse(body.encode())[0].keys
    assert key.encode("utf-8", "surrogateescape") == b"a\xffb"


@given(st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)), st.sampled_from(["Z", ".5Z", ".999Z", "+00:00"]))
def test_times_are_cut_to_the_second(moment: datetime, tail: str):
    whole = moment.replace(microsecond=0, tzinfo=UTC)
    assert to_ns(f"{moment:%Y-%m-%dT%H:%M:%S}{tail}") == (whole - EPOCH) // timedelta(seconds=1) * 10**9
