"""List prices that come with us, each with its day, its source and how far to trust it: a table, not a promise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lifecycle.sizing.prices import GIB, KIB, Price, Restore, Tier, nanos

_TB = 1024 * GIB
"""How AWS counts the TB of its steps: 1,024 of its GB, each 2^30."""


def _flat(text: str) -> tuple[Tier, ...]:
    return (Tier(None, nanos(text)),)


def _restore(word: str, gb: str, requests: str) -> Restore:
    return Restore(word, nanos(gb), nanos(requests))


# Amazon S3, us-east-1: a transcription of the AWS Price List API as published on 2026-09-28, by 0-draft/s3-atlas at
# 8cd8b58 (storage-classes.json and s3-pricing.json, checked on 2026-10-03). The only source of the request prices; five
# others agree on what storage costs. That parts on their way into an archive are billed as those of Standard, and only
# the last request as the archive's: Amazon S3 User Guide, "Multipart upload and pricing".

_S3_SOURCE = "AWS Price List API of 2026-09-28, as transcribed by 0-draft/s3-atlas@8cd8b58"
_S3 = Price(
    name="",
    tiers=(),
    gb_bytes=GIB,
    family="s3/us-east-1",
    egress_nano=nanos("0.09"),
    as_of="2026-10-03",
    source=_S3_SOURCE,
    confidence="storage: several sources agree; requests: one source",
)
_STANDARD = (Tier(50 * _TB, nanos("0.023")), Tier(500 * _TB, nanos("0.022")), Tier(None, nanos("0.021")))
_ARCHIVED = replace(
    _S3,
    overhead_bytes=32 * KIB,
    index_bytes=8 * KIB,
    index_nano=nanos("0.023"),
    restored_nano=nanos("0.023"),
    part_nano=nanos("0.005"),
)


def _s3() -> Iterable[Price]:
    """The classes of Amazon S3."""
    yield replace(
        _S3,
        name="s3-standard/us-east-1",
        tiers=_STANDARD,
        storage_class="STANDARD",
        put_nano=nanos("0.005"),
        get_nano=nanos("0.0004"),
    )
    infrequent = replace(
        _S3,
        min_days=30,
        min_object_bytes=128 * KIB,
        put_nano=nanos("0.01"),
        get_nano=nanos("0.001"),
        transition_nano=nanos("0.01"),
        retrieval_nano=nanos("0.01"),
    )
    yield replace(infrequent, name="s3-standard-ia/us-east-1", tiers=_flat("0.0125"), storage_class="STANDARD_IA")
    yield replace(infrequent, name="s3-onezone-ia/us-east-1", tiers=_flat("0.01"), storage_class="ONEZONE_IA")
    yield replace(
        _S3,
        name="s3-glacier-ir/us-east-1",
        tiers=_flat("0.004"),
        storage_class="GLACIER_IR",
        min_days=90,
        min_object_bytes=128 * KIB,
        put_nano=nanos("0.02"),
        get_nano=nanos("0.01"),
        transition_nano=nanos("0.02"),
        retrieval_nano=nanos("0.03"),
    )
    yield from _s3_archives()
    yield replace(
        _S3,
        name="s3-intelligent-tiering/us-east-1",
        tiers=_STANDARD,
        storage_class="INTELLIGENT_TIERING",
        put_nano=nanos("0.005"),
        get_nano=nanos("0.0004"),
        transition_nano=nanos("0.01"),
        objects_nano=nanos("0.0025"),
        confidence="the frequent tier only: what is not read for 30 days costs 0.0125, for 90 days 0.004",
    )
    yield replace(
        _S3,
        name="s3-express-onezone/us-east-1",
        tiers=_flat("0.11"),
        storage_class="EXPRESS_ONEZONE",
        put_nano=nanos("0.00113"),
        get_nano=nanos("0.00003"),
        upload_nano=nanos("0.0032"),
        retrieval_nano=nanos("0.0006"),
        confidence="low: other sources say 0.16",
    )


def _s3_archives() -> Iterable[Price]:
    """The classes whose objects have to be restored before they are read; 40 KiB go with each object."""
    yield replace(
        _ARCHIVED,
        name="s3-glacier/us-east-1",
        tiers=_flat("0.0036"),
        storage_class="GLACIER",
        min_days=90,
        put_nano=nanos("0.03"),
        get_nano=nanos("0.0004"),
        transition_nano=nanos("0.03"),
        retrieval_nano=nanos("0.01"),
        restores=(
            _restore("expedited", "0.03", "10"),
            _restore("standard", "0.01", "0.05"),
            _restore("bulk", "0", "0"),
        ),
    )
    yield replace(
        _ARCHIVED,
        name="s3-deep-archive/us-east-1",
        tiers=_flat("0.00099"),
        storage_class="DEEP_ARCHIVE",
        min_days=180,
        put_nano=nanos("0.05"),
        get_nano=nanos("0.0004"),
        transition_nano=nanos("0.05"),
        retrieval_nano=nanos("0.02"),
        restores=(_restore("standard", "0.02", "0.10"), _restore("bulk", "0.0025", "0.025")),
    )


# Google Cloud Storage, a region in the United States. The provider's page prices a GiB-hour, of which a month has 730;
# requests are known of the standard class only.


def _gcs() -> Iterable[Price]:
    for word, month, min_days, retrieval in (
        ("standard", "0.02", 0, "0"),
        ("nearline", "0.01", 30, "0.01"),
        ("coldline", "0.004", 90, "0.02"),
        ("archive", "0.0012", 365, "0.05"),
    ):
        yield Price(
            name=f"gcs-{word}/us",
            tiers=_flat(month),
            gb_bytes=GIB,
            family="gcs/us",
            storage_class=word.upper(),
            min_days=min_days,
            put_nano=nanos("0.005") if word == "standard" else None,
            get_nano=nanos("0.0004") if word == "standard" else None,
            retrieval_nano=nanos(retrieval),
            as_of="2026-09-20",
            source="cloud.google.com/storage/pricing, as read by api-evangelist/gcp-cloud-storage",
            confidence="one source; requests are known of the standard class only",
        )


# Azure Blob Storage, East US, locally redundant: a generated file that calls its own prices approximate.


def _azure() -> Iterable[Price]:
    for word, month, min_days, retrieval, doubt in (
        ("hot", "0.018", 0, "0", ""),
        ("cool", "0.01", 30, "0.01", ""),
        ("cold", "0.0036", 90, "0.03", ", other sources say 0.0045"),
        ("archive", "0.00099", 180, "0.022", ", other sources say 0.002"),
    ):
        yield Price(
            name=f"azure-{word}-lrs/eastus",
            tiers=_flat(month),
            gb_bytes=GIB,
            family="azure-lrs/eastus",
            storage_class=word.upper(),
            min_days=min_days,
            put_nano=None,
            get_nano=None,
            retrieval_nano=nanos(retrieval),
            as_of="2026-05-05",
            source="api-evangelist/microsoft-azure-blob-storage, a generated file",
            confidence=f"low: approximate{doubt}; requests are not known",
        )


PRESETS: dict[str, Price] = {price.name: price for price in (*_s3(), *_gcs(), *_azure())}
"""By name, in the order in which people read them."""


def _families() -> Mapping[str, Mapping[str, Price]]:
    found: dict[str, dict[str, Price]] = {}
    for price in PRESETS.values():
        found.setdefault(price.family, {})[price.storage_class] = price
    return found


FAMILIES = _families()
"""Price lists by name, ``s3/us-east-1``: the row of each storage class, first the one that objects have unasked."""
