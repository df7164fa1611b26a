"""A bill as people read it: one store needs no sum, what is unknown is at least, and what costs nothing is not told."""

from lifecycle.render.bill import bill_lines
from lifecycle.render.table import Look
from lifecycle.sizing.bill import Back, Bill, Line, WayBack, read


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
        "          leaving early $0.04); not all that is asked of warm has a known price",
        "  stays   1 move that does not pay: it would cost $7.00 more than staying (-v",
        "          lists it)",
        "  note    list prices of 2026-09-20; no price for cold: not counted; what lies",
        "          in the trash is not counted",
    ]


def test_nothing_but_unknown_requests():
    text = shown(Bill("USD", (Line("warm", "gcs-nearline/us", "2026-09-20", 0, 0, 0, 0, 0, known=False),)), None)
    assert "  once    at least $0.00; not all that is asked of warm has a known price" in text


def test_what_is_shown_adds_up():
    """Each change is that of the cents that are shown, and so is the sum of them."""
    lines = (Line("a", "own", "", 1_006_000, 2_014_900, 0, 0, 0), Line("b", "own", "", 1_006_000, 4_000, 0, 0, 0))
    assert shown(Bill("USD", lines)).splitlines()[2:5] == [
        "  a      own    $1.01        $2.01  +$1.00",
        "  b      own    $1.01  under $0.01  -$1.01",
        "  all           $2.02        $2.01  -$0.01",
    ]


def test_what_it_costs_to_get_back_and_how_long_that_takes():
    ways = (
        WayBack("expedited", "1 to 5 minutes", 300, 37_620_880, 4_898_140, 47_104, 0),
        WayBack("standard", "3 to 5 hours", 18_000, 9_178_160, 4_898_140, 47_104, 0, known=False),
    )
    name = "s3-glacier/us-east-1"
    line = Line("warm@GLACIER", name, "2026-10-03", 0, 3_286_000, 0, 0, 0, egress=1_000_000, source="AWS")
    back = Back("warm@GLACIER", name, 980 * 10**9, 1024, 7, ways, "2026-10-03", "AWS")
    unpriced = (Back("cold@GLACIER", "", 10**9, 1, 7), Back("old@GLACIER", "own", 10**9, 1, 7))
    bill = Bill("USD", (line,), back=(back, *unpriced))
    assert read(bill.encode()) == bill
    text = shown(bill)
    assert max(map(len, text.splitlines())) <= 80
    assert text.splitlines()[3:] == [
        "  once    $1.00 (leaving the region $1.00)",
        "  back    980 GB from warm@GLACIER: expedited $42.57 (1 to 5 minutes below 250",
        "          MB, longer above), standard at least $14.12 (3 to 5 hours); readable",
        "          for 7 days",
        "  back    1 GB from cold@GLACIER: no price for cold@GLACIER, so nobody knows",
        "          what getting it back costs",
        "  back    1 GB from old@GLACIER: nobody said what getting it back costs",
        "  note    list prices of 2026-10-03 (AWS); what lies in the trash is not counted",
    ]


def test_a_bill_of_an_earlier_version_is_read():
    old = '{"currency":"USD","lines":[],"spared":0,"withheld":0}'
    assert read(old) == Bill("USD", ())
