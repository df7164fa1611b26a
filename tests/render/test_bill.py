"""A bill as people read it: one store needs no sum, what is unknown is at least, and what costs nothing is not told."""

from lifecycle.render.bill import bill_lines
from lifecycle.render.table import Look
from lifecycle.sizing.bill import Bill, Line


def shown(bill: Bill, width: int | None = 80) -> str:
    return "\n".join(bill_lines(bill, Look(width)))


def test_one_store_needs_no_sum():
    text = shown(Bill("EUR", (Line("hot", "own", "", 3_100_000, 3_100_000, 0, 0, 0),)))
    assert text.splitlines() == [
        "Costs a month",
        "  store  price       now     after    change",
        "  hot    own    EUR 3.10  EUR 3.10  EUR 0.00",
        "  note    what lies in the trash is not counted",
    ]


def test_what_is_not_known_is_at_least():
    lines = (
        Line("cold", "", "", 0, 0, 0, 0, 0),
        Line("hot", "gcs-standard/us", "2026-09-20", 9_000_000, 4_000_000, 120_000, 0, 0),
        Line("warm", "gcs-nearline/us", "2026-09-20", 0, 2_000_000, 0, 3_000_000, 40_000, known=False),
    )
    assert shown(Bill("USD", lines, 1, 7_000_000)).splitlines() == [
        "Costs a month",
        "  store   price              now  after  change",
        "  hot     gcs-standard/us  $9.00  $4.00  -$5.00",
        "  warm    gcs-nearline/us  $0.00  $2.00  +$2.00",
        "  cold    no price             ?      ?       ?",
        "  priced                   $9.00  $6.00  -$3.00",
        "  once    at least $3.16 (requests $0.12, reading and reading back $3.00,",
        "          leaving early $0.04); what requests cost on warm is not known",
        "  stays   1 move that does not pay: it would cost $7.00 more than staying (-v",
        "          lists it)",
        "  note    list prices of 2026-09-20; cold: not counted, for nobody said what it",
        "          costs; what lies in the trash is not counted",
    ]


def test_nothing_but_unknown_requests():
    text = shown(Bill("USD", (Line("warm", "gcs-nearline/us", "2026-09-20", 0, 0, 0, 0, 0, known=False),)), None)
    assert "  once    at least $0.00; what requests cost on warm is not known" in text


def test_what_is_shown_adds_up():
    """Each change is that of the cents that are shown, and so is the sum of them."""
    lines = (Line("a", "own", "", 1_006_000, 2_014_900, 0, 0, 0), Line("b", "own", "", 1_006_000, 4_000, 0, 0, 0))
    assert shown(Bill("USD", lines)).splitlines()[2:5] == [
        "  a      own    $1.01        $2.01  +$1.00",
        "  b      own    $1.01  under $0.01  -$1.01",
        "  all           $2.02        $2.01  -$0.01",
    ]
