"""What a forecast says of fees: what is in the amounts, what is not, and why."""

from lifecycle.render.forecast import once
from lifecycle.sizing.outlay import Once, Outlay


def told(fees: Once | None) -> str:
    return once(Outlay("USD", (0,), 0, 0, (), fees))


def test_what_is_not_in_it_is_said():
    assert told(None).startswith("Requests, reading, leaving early and egress are not in it: runs that are alike")
    assert "What training itself asks of a store is not counted." in told(Once(1_000_000, 0, 0, 0, known=True))


def test_only_what_is_paid_is_named():
    text = told(Once(1_000_000, 0, 0, 2_000_000, known=True))
    assert text.startswith("In it is what carrying plans out costs: requests $1.00, egress $2.00.")
    assert told(Once(0, 0, 0, 0, known=True)).startswith("Carrying plans out costs nothing else. What training itself")


def test_a_store_without_a_price_makes_it_a_least():
    text = once(Outlay("USD", (0,), 0, 0, ("warm",), Once(0, 0, 0, 0, known=True)))
    assert text.startswith("Carrying plans out costs nothing else, as far as prices are known.")


def test_an_unknown_fee_makes_it_a_least():
    assert "costs, as far as prices are known: reading $3.00." in told(Once(0, 3_000_000, 0, 0, known=False))
    assert "nothing else, as far as prices are known." in told(Once(0, 0, 0, 0, known=False))
