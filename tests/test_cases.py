"""Every case of the open file and of our own, driven through the real flows; each is a report of a real loss."""

from pathlib import Path

import pytest

from tests.cases.drive import check
from tests.cases.grammar import Unsupported, read
from tests.cases.happen import deeds
from tests.servers import Server

FOLDER = Path(__file__).parent / "data" / "cases"
LATER: set[str] = set()
"""Open cases that need what the engine does not have yet; it must say so, and nothing else may be skipped."""

FILES = ("open.yaml", "own.yaml", "tiers.yaml")
CASES = [raw for name in FILES if (FOLDER / name).exists() for raw in read(FOLDER / name)]


@pytest.mark.parametrize("raw", CASES, ids=[raw["id"] for raw in CASES])
def test_case(raw, moto: Server):
    verdict = check(raw, lambda: moto)
    if verdict.skipped == "needs root":
        pytest.skip(verdict.skipped)
    assert not verdict.wrong, "\n".join(verdict.wrong)
    assert bool(verdict.skipped) == (raw["id"] in LATER), verdict.skipped


KNOWN = [
    "s3://cold/x",
    "r/step-1/w",
    "r/step-1/DONE",
    "r/step-2/w",
    "r/latest",
    "n2",
    "r/step-1",
    "r/step-2",
    "precious/a",
]
SENTENCES = {
    "another process unlinks r/step-1/w between our listing and our unlink": ("remove", "r/step-1/w", ""),
    "trainer deletes r/step-2 while we delete r/step-1": ("remove", "r/step-2", ""),
    "owner renames r/step-1 to keep-me": ("rename", "r/step-1", "r/keep-me"),
    "r/step-1 is replaced by a symlink to ../precious": ("link", "r/step-1", "../precious"),
    "trainer points r/latest to step-1": ("point", "r/latest", "step-1"),
    "r/step-1/w is truncated to 40 bytes by its owner": ("truncate", "r/step-1/w", ""),
    "trainer PUTs a new r/step-1/w (etag new, size 90)": ("write", "r/step-1/w", ""),
    "a reader takes a lease on r/step-1": ("lease", "r/step-1", ""),
    "GetObjectTagging answers 500 for r/step-1/*": ("tags_fail", "r/step-1", ""),
    "the second page of the listing is lost": ("listing_cut", "", ""),
    "rename of r/step-1 answers EACCES (root_squash)": ("errno", "r/step-1", ""),
    "r/step-1/w is open elsewhere: unlink leaves .nfs0001": ("silly_rename", "r/step-1/w", ""),
    "SIGKILL between the index update and the unlink of r/step-1": ("kill", "r/step-1", ""),
    "four processes plan and apply at the same instant": ("many", "", ""),
    "n2 is unmounted": ("unmount", "n2", ""),
    "a bit of r/step-1/w flips": ("rot", "r/step-1/w", ""),
    "s3://cold/x/r/step-1/w reads back with other bytes": ("rot", "s3://cold/x/r/step-1/w", ""),
    "the connection to the target drops after the first part": ("http", "", ""),
}


@pytest.mark.parametrize(("text", "deed"), SENTENCES.items())
def test_a_sentence_is_read_by_its_verb(text: str, deed: tuple[str, str, str]):
    first = deeds(text, KNOWN)[0]
    assert (first.verb, first.path, first.other) == deed


def test_a_sentence_that_nobody_understands_is_told():
    with pytest.raises(Unsupported, match="the moon is full"):
        deeds("the moon is full of cheese", KNOWN)
