"""A store over several roots has one URL, and what names a path below any of them means what lies there."""

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.config.roots import canonical_root
from lifecycle.core.listing import Flavour, Folder, Listing
from lifecycle.core.model import OnDangle, Pointer, PointerRole
from lifecycle.layouts.lineages import abroad
from lifecycle.layouts.pointers import Resolver
from lifecycle.layouts.unions import join_roots, roots_of

URL = join_roots(["file:///mnt/n1/ckpt", "file:///mnt/n2/ckpt"])
NAMES = st.text(st.sampled_from("a+ :/file."), min_size=1, max_size=12).filter(
    lambda name: not {".", ".."} & {*name.split("/")} and name.strip("/")
)


@given(st.lists(NAMES, min_size=2, max_size=4))
def test_the_roots_can_be_taken_out_of_the_url(names: list[str]):
    roots = [canonical_root(f"/mnt/ckpt/{name}", name) for name in names]
    assert roots_of(join_roots(roots)) == tuple(roots)
    assert roots_of(roots[0]) == (roots[0],)


def test_a_path_below_any_root_leads_into_the_store():
    folders = {"": Folder("", dirs=["r"]), "r": Folder("r", dirs=["step-1"]), "r/step-1": Folder("r/step-1")}
    resolver = Resolver(Listing(Flavour.POSIX, folders), URL, {"r/step-1": "r/step-1"})
    for root in ("/mnt/n1/ckpt", "/mnt/n2/ckpt", "file:///mnt/n1/ckpt", "file:///mnt/n2/ckpt"):
        assert resolver.place("r", f"{root}/r/step-1").key == "r/step-1"
    for other in ("/mnt/n3/ckpt", "/mnt/n1/ckpt-2", "file:///mnt/n2"):
        assert resolver.place("r", f"{other}/r/step-1").key is None


def test_another_store_names_a_parent_by_the_path_of_either_root():
    urls = {"hot": URL, "warm": "file:///mnt/warm"}
    for text in ("/mnt/n1/ckpt/base/step-9", "/mnt/n2/ckpt/base/step-9", "../../n2/ckpt/base/step-9"):
        pointer = Pointer(
            "warm", "lora", "lora/config.json", PointerRole.NEED, None, text, "parent", OnDangle.CRASH,
            flags=("external_reference",),
        )  # fmt: skip
        assert [p.target for p in abroad(pointer, urls) if p.target] == ["hot:base/step-9"]
    out = Pointer(
        "hot", "lora", "lora/config.json", PointerRole.NEED, None, "../../../warm/base", "parent", OnDangle.CRASH,
        flags=("external_reference",),
    )  # fmt: skip
    assert [p.target for p in abroad(out, urls) if p.target] == ["warm:base"]
