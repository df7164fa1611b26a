"""Laws of money: without prices nothing changes, with them nothing more goes, and what is held back does not pay."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lifecycle.core.action import Action, Verb
from lifecycle.core.evaluate import Decision, Judgement, evaluate
from lifecycle.core.model import Checkpoint, Evidence, Hold, Status
from lifecycle.core.places import standing
from lifecycle.core.plan import Draft, Plan, load
from lifecycle.core.policy import Age, Anchor, Every, Last, Limits, Match, Place, Policy, Unit, Younger
from lifecycle.core.protect import Around
from lifecycle.core.select import clusters
from lifecycle.flows.money import HORIZON_S, Ledger, Prices, age_s
from lifecycle.sizing import cost
from lifecycle.sizing.bill import Bill, money, read
from lifecycle.sizing.cost import DAY_S, Load
from lifecycle.sizing.presets import PRESETS
from lifecycle.sizing.prices import GB, GIB, Price, Tier, nanos
from tests.core.test_places import BASIS, STORES, World, copy_of, worlds
from tests.core.worlds import DAY, HOUR, NOW, checkpoint

S3 = {p.storage_class: p for name, p in PRESETS.items() if name.startswith("s3-")}


def planned(world: World, prices: Prices | None) -> Plan:
    """As ``propose`` does it; None: as it was done before there were prices."""
    draft, ledger = Draft((world.policy,), frozenset(STORES)), Ledger(prices or {}, (world.policy,), NOW)
    for runs, policies in clusters(world.runs(), (world.policy,)):
        judgement = evaluate(runs, policies, Around(NOW, world.holds))
        before = len(draft.actions)
        if prices is None:
            draft.add(judgement)
        else:
            draft.add(judgement, ledger.against(judgement))
            ledger.note(judgement, [action for _, action in draft.actions[before:]])
    return draft.finish(BASIS, (), "" if prices is None else ledger.bill())


tables = st.dictionaries(st.sampled_from(STORES), st.sampled_from(list(PRESETS.values())))
large = worlds().map(
    lambda world: World(
        [replace(c, bytes=c.bytes * 10**10) for c in world.own],
        [replace(c, bytes=c.bytes * 10**10) for c in world.copies],
        world.policy,
        world.holds,
    )
)


@settings(max_examples=30)
@given(large)
def test_without_prices_a_plan_is_what_it_was(world: World):
    assert "".join(planned(world, {}).text()) == "".join(planned(world, None).text())


@settings(max_examples=30)
@given(large, tables)
def test_prices_never_make_anything_more_go(world: World, prices: Prices):
    """What is held back is copied nowhere and leaves nothing; all else is done as without prices."""
    plain, priced = planned(world, None), planned(world, prices)
    assert priced.lines == plain.lines and priced.anchors == plain.anchors
    held_back = {f.subject for f in priced.findings if f.code == "does_not_pay"}
    event(f"held back: {bool(held_back)}")
    assert [a for a in plain.actions if a.checkpoint not in held_back] == list(priced.actions)
    gone = [a for a in plain.actions if a.checkpoint in held_back]
    assert all(a.verb is Verb.COPY or a.copies for a in gone), "a checkpoint that goes for good is no move"
    assert priced.totals.get("withheld_moves", 0) == len(held_back)
    after = world.carried_out(priced)
    kept = {json.loads(line)["id"] for line in priced.lines if json.loads(line)["verdict"] == "keep"}
    assert {f"hot:{c.key}" for c in after.own + after.copies} >= kept


@settings(max_examples=30)
@given(large, tables)
def test_a_bill_adds_up(world: World, prices: Prices):
    plan = planned(world, prices)
    assert load("".join(plan.text())) == plan
    if not prices:
        assert plan.bill == ""
        return
    bill = read(plan.bill)
    assert bill.encode() == plan.bill
    assert {line.store for line in bill.priced} == set(prices) and not set(bill.unpriced) & set(prices)
    after = world.carried_out(plan)
    for line in bill.priced:
        for when, then in ((line.now, world), (line.after, after)):
            price, there = prices[line.store], [c for c in then.own + then.copies if c.store == line.store]
            billed = sum(cost.billed_bytes(price, Load(c.bytes, c.files)) for c in there)
            assert when == cost.micros(cost.month(price, billed, sum(c.files for c in there)))
        assert min(line.requests, line.reading, line.early) >= 0
    assert bill.withheld == plan.totals.get("withheld_moves", 0) and bill.spared >= 0


SIZE, FILES = 980 * GB, 1024


def big(*steps_and_ages: tuple[int, int]) -> list[Checkpoint]:
    return [checkpoint(f"r/step-{step}", step, age, bytes=SIZE, files=FILES) for step, age in steps_and_ages]


def site(
    own: list[Checkpoint], policy: Policy, copies: tuple[Checkpoint, ...] = (), holds: tuple[Hold, ...] = ()
) -> World:
    return World(own, list(copies), policy, holds)


def tiers(*keep: Last | Every | Younger, place: tuple[Place, ...] = (Place(("warm",)),), **fields: object) -> Policy:
    given = {"limits": Limits(trash_s=None, grace_s=0), "digest": "digest of p", **fields}
    return Policy("p", Match(), keep, place=place, **given)  # type: ignore[arg-type]  # its fields


def copied(plan: Plan) -> set[str]:
    return {a.checkpoint.removeprefix("hot:r/step-") for a in plan.actions if a.to}


@pytest.mark.parametrize("to", ["STANDARD_IA", "ONEZONE_IA", "GLACIER_IR", "GLACIER", "DEEP_ARCHIVE"])
def test_the_last_three_of_an_hourly_run_never_move_and_milestones_do(to: str):
    prices = {"hot": S3["STANDARD"], "warm": S3[to]}
    hourly = big(*((100 + n, (8 - n) * HOUR) for n in range(8)))
    plan = planned(site(hourly, tiers(Last(3))), prices)
    assert copied(plan) == set() and plan.totals["withheld_moves"] == 3
    weekly = big(*((1000 * n, (9 - n) * 7 * DAY) for n in range(1, 9)))
    plan = planned(site(weekly, tiers(Every(Unit.STEPS, 1000))), prices)
    assert copied(plan) == {str(1000 * n) for n in range(1, 9)} and "withheld_moves" not in plan.totals


def test_an_exact_time_decides_to_the_day():
    """Our own copies are sent in parts and read back: from Standard to infrequent access it takes over 32 days."""
    prices = {"hot": S3["STANDARD"], "warm": S3["STANDARD_IA"]}
    own = big((1, 10 * DAY), (2, 9 * DAY))
    for days, moves in ((42, set()), (43, {"1"})):
        rule = Younger(days * DAY_S, Anchor.NOW)
        made = site(own, tiers(rule, place=(Place(("warm",), steps_max=1),)))
        assert copied(planned(made, prices)) == moves
    [found] = [
        f
        for f in planned(
            site(own, tiers(Younger(30 * DAY_S, Anchor.NOW), place=(Place(("warm",), steps_max=1),))), prices
        ).findings
        if f.code == "does_not_pay"
    ]
    assert found.text == (
        "it stays: for the 20d it has at most, staying costs $13.99 and moving $21.90 "
        "(30 days are billed there at least; copying and reading back cost $10.49; it pays after 32d20h)"
    )


def test_what_a_later_place_would_take_at_once_is_not_brought_to_this_one_first():
    """Thirty days at least are billed there, and it would stay for twenty."""
    prices = {"hot": S3["STANDARD"], "warm": S3["STANDARD_IA"], "cold": S3["GLACIER_IR"]}
    chain = (Place(("cold",), older=Age(30 * DAY_S, Anchor.NOW)), Place(("warm",)))
    own = big((1, 40 * DAY), (2, 10 * DAY))
    plan = planned(site(own, tiers(Every(Unit.STEPS, 1), place=chain)), prices)
    assert [(a.checkpoint, a.to) for a in plan.actions if a.to] == [("hot:r/step-1", "cold")]


@pytest.mark.parametrize(
    ("prices", "place"),
    [
        ({"hot": S3["STANDARD"]}, Place(("warm",))),
        ({"warm": S3["STANDARD_IA"]}, Place(("warm",))),
        ({"hot": S3["STANDARD"], "warm": S3["STANDARD_IA"]}, Place(("warm",), cost_ignored=True)),
        ({"hot": S3["STANDARD_IA"], "warm": S3["STANDARD"]}, Place(("warm",))),
        ({"hot": S3["STANDARD"], "warm": S3["STANDARD_IA"], "cold": S3["GLACIER_IR"]}, Place(("warm", "cold"))),
        ({"hot": S3["STANDARD"], "warm": S3["STANDARD_IA"]}, Place(("hot", "warm"))),
    ],
    ids=["place unknown", "source unknown", "forced", "dearer: not to save", "more copies: for safety", "none leaves"],
)  # fmt: skip
def test_what_is_not_known_or_not_made_to_save_is_done(prices: Prices, place: Place):
    hourly = big(*((100 + n, (8 - n) * HOUR) for n in range(8)))
    plan = planned(site(hourly, tiers(Last(3), place=(place,))), prices)
    assert copied(plan) == {"105", "106", "107"} and "withheld_moves" not in plan.totals


def test_a_copy_that_is_asked_for_is_made_though_nothing_may_leave():
    """Two copies are asked for and one place is named: nothing leaves, so there is no move to weigh."""
    hourly = big(*((100 + n, (8 - n) * HOUR) for n in range(8)))
    policy = tiers(Last(3), limits=Limits(copies_min=2, grace_s=0))
    assert len(copied(planned(site(hourly, policy), {"hot": S3["STANDARD"], "warm": S3["STANDARD_IA"]}))) == 3


def test_what_was_copied_already_leaves():
    """The fees are paid: staying would only go on to cost."""
    own = big(*((100 + n, (8 - n) * HOUR + DAY) for n in range(8)))
    world = site(own, tiers(Last(8)), tuple(copy_of(c, "warm") for c in own))
    plan = planned(world, {"hot": S3["STANDARD"], "warm": S3["STANDARD_IA"]})
    assert not copied(plan) and len([a for a in plan.actions if a.copies]) > 0


def test_a_held_one_is_looked_at_a_year_ahead():
    """How long a hold lasts is not known; what has not paid within a year is not made to save."""
    own = big((1, 10 * DAY), (2, 9 * DAY))
    policy = tiers(Younger(30 * DAY_S, Anchor.NOW), place=(Place(("warm",), steps_max=1),))
    hold = Hold("h", "hot:r/step-1", "ann", "paper", NOW)
    ours = Price("own", (Tier(None, nanos("0.0124")),), GB)
    saves_little = {"hot": ours, "warm": replace(ours, tiers=(Tier(None, nanos("0.0123")),), put_nano=nanos("1"))}
    saves_much = {"hot": ours, "warm": S3["GLACIER_IR"]}
    assert copied(planned(site(own, policy), saves_much)) == set()
    assert copied(planned(site(own, policy, holds=(hold,)), saves_much)) == {"1"}
    plan = planned(site(own, policy, holds=(hold,)), saves_little)
    assert copied(plan) == set() and HORIZON_S == 365 * DAY_S
    assert "for 365d, staying costs" in next(f.text for f in plan.findings if f.code == "does_not_pay")


def test_what_goes_early_is_on_the_bill():
    """Ten days old, three more in the trash, of thirty that are billed."""
    own = big((1, 10 * DAY), (2, HOUR))
    plan = planned(site(own, tiers(Last(1), place=(), limits=Limits(grace_s=0))), {"hot": S3["STANDARD_IA"]})
    [line] = read(plan.bill).lines
    assert [a.verb for a in plan.actions] == [Verb.RETIRE]
    month = cost.rate(S3["STANDARD_IA"], Load(SIZE, FILES))
    assert line.early == cost.micros(month * 17 / 30) and line.fees == line.early
    assert (line.now, line.after) == (cost.micros(2 * month), cost.micros(month))


def test_a_request_without_a_price_is_at_least():
    own = big((1, 400 * DAY), (2, 300 * DAY))
    prices = {"hot": PRESETS["gcs-standard/us"], "warm": PRESETS["gcs-nearline/us"]}
    plan = planned(site(own, tiers(Every(Unit.STEPS, 1))), prices)
    lines = {line.store: line for line in read(plan.bill).lines}
    assert copied(plan) == {"1", "2"} and not lines["warm"].known and lines["hot"].known
    assert lines["hot"].requests > 0 and lines["warm"].requests == 0 and lines["warm"].reading > 0


def test_another_class_than_the_one_that_is_priced_is_another_place():
    """What it costs there is not known, so nothing is held back for it; what it no longer costs here is."""
    own = big((1, 10 * DAY), (2, HOUR))
    copy = replace(copy_of(own[0], "warm"), storage_class="STANDARD_IA", changed_at_ns=NOW - 10 * DAY)
    policy = tiers(Last(9), place=(Place(("hot", "warm@GLACIER"), steps_max=1),))
    plan = planned(site(own, policy, (copy,)), {"hot": S3["STANDARD"], "warm": S3["STANDARD_IA"]})
    assert [(a.verb, a.storage_class) for a in plan.actions] == [(Verb.RECLASS, "GLACIER")]
    lines = {line.store: line for line in read(plan.bill).lines}
    assert set(lines) == {"hot", "warm", "warm@GLACIER"}
    assert lines["warm"].after == 0 < lines["warm"].now and lines["warm"].early > 0
    assert lines["warm@GLACIER"].now == lines["warm@GLACIER"].after == 0
    moves = site(own, replace(policy, place=(Place(("warm@GLACIER",), steps_max=1),)))
    assert copied(planned(moves, {"hot": S3["STANDARD"], "warm": S3["STANDARD_IA"]})) == {"1"}


def test_copies_count_their_days_from_when_they_came():
    c = checkpoint("r/step-1", 1, 100 * DAY)
    assert age_s(replace(c, changed_at_ns=NOW - 3 * DAY), NOW) == 3 * DAY_S
    assert age_s(replace(c, changed_at_ns=NOW + DAY), NOW) == 0


def test_broken_copies_cost_as_well():
    """What is not whole takes its space: the bill is of what stands, not of what is good."""
    own = [replace(c, evidence=Evidence.PARTIAL) for c in big((1, 10 * DAY))]
    plan = planned(site(own, tiers(Last(3))), {"hot": S3["STANDARD"]})
    assert read(plan.bill).lines[0].now == cost.micros(cost.rate(S3["STANDARD"], Load(SIZE, FILES)))
    assert len([one for c in own for one in standing(c)]) == 1


@pytest.mark.parametrize(
    ("micro", "text"),
    [
        (0, "$0.00"), (1, "under $0.01"), (-1, "-under $0.01"), (4_999, "under $0.01"), (5_000, "$0.01"),
        (1_204_500_000, "$1,204.50"), (-3_100_000, "-$3.10"), (994_999, "$0.99"), (995_000, "$1.00"),
    ],
)  # fmt: skip
def test_money_for_people(micro: int, text: str):
    assert money(micro, "USD") == text
    assert money(3_100_000, "EUR") == "EUR 3.10"


@settings(max_examples=30)
@given(st.integers(0, 10**15), st.integers(1, 10**6), st.permutations(range(6)))
def test_sums_do_not_depend_on_their_order(size: int, files: int, order: list[int]):
    """Whole numbers and exact fractions: however the parts come, the last digit is the same."""
    parts = [cost.rate(price, Load(size // (n + 1), files)) for n, price in enumerate(list(S3.values())[:6])]
    assert sum((parts[n] for n in order), Fraction(0)) == sum(parts, Fraction(0))
    assert Bill("USD", ()).priced == ()


def test_of_what_is_made_thin_only_the_part_that_goes_leaves_the_bill():
    priced = Price(name="own", tiers=(Tier(None, nanos("1")),), gb_bytes=GB)
    c = checkpoint("r/step-1", 1, 9 * DAY, bytes=100 * GB, parts=(("optimizer", 60 * GB), ("weights", 40 * GB)))
    slim = replace(Action.upon(c, trash_s=None, policies=("p",)), verb=Verb.SLIM, bytes=60 * GB)
    copy = replace(Action.upon(c, trash_s=None, policies=("p",), to="warm"), bytes=40 * GB, part="weights")
    ledger = Ledger({"hot": priced, "warm": priced}, (), NOW)
    decision = Decision(c, Status.COMPLETE, True, (), (), ())
    ledger.note(Judgement([decision], [], True), [copy, slim])
    lines = {line.store: line for line in read(ledger.bill()).lines}
    assert [money(lines[s].now, "USD") for s in ("hot", "warm")] == ["$100.00", "$0.00"]
    assert [money(lines[s].after, "USD") for s in ("hot", "warm")] == ["$40.00", "$40.00"]


CLASSES = {"hot": S3["STANDARD"], "warm": S3["STANDARD_IA"], **{f"warm@{name}": price for name, price in S3.items()}}
"""As lifecycle.yaml gives them with ``s3/us-east-1`` for both stores."""


def in_class(c: Checkpoint, name: str = "STANDARD_IA", days: int = 40) -> Checkpoint:
    return replace(copy_of(c, "warm"), storage_class=name, changed_at_ns=NOW - days * DAY)


def only_copies(own: list[Checkpoint], policy: Policy, days: int = 40) -> World:
    return site([], policy, tuple(in_class(c, days=days) for c in own))


def test_a_change_of_class_is_on_the_bill():
    """980 GB, 912.696 GiB, in 1,024 objects, 40 days old, from infrequent access to Glacier.

    now                      912.696 * 0.0125 = 11.40870 a month
    after                    912.696 * 0.0036 + 0.03125 * 0.0036 + 0.0078125 * 0.023 = 3.28600 a month: 32 KiB and 8 KiB
                             go with each object
    on warm, once            read by us and by the provider: 2 * 9.12696; 117,760 requests that read: 0.11776
    on warm@GLACIER, once    1,024 requests: 0.03072
    """
    own = big((1, 50 * DAY), (2, 49 * DAY))
    policy = tiers(Every(Unit.STEPS, 1), place=(Place(("warm@GLACIER",), steps_max=1), Place(("warm",))))
    plan = planned(only_copies(own, policy), CLASSES)
    assert [(a.verb, a.storage_class) for a in plan.actions] == [(Verb.RECLASS, "GLACIER")]
    lines = {line.store: line for line in read(plan.bill).lines}
    warm, glacier = lines["warm"], lines["warm@GLACIER"]
    assert set(lines) == {"hot", "warm", "warm@GLACIER"}
    assert (warm.now, warm.after) == (22_817_403, 11_408_702) and (glacier.now, glacier.after) == (0, 3_285_998)
    assert (warm.reading, warm.requests, warm.early) == (18_253_922, 117_760, 0)
    assert (glacier.requests, glacier.reading, glacier.early, glacier.egress) == (30_720, 0, 0, 0)
    assert (glacier.price, glacier.as_of) == ("s3-glacier/us-east-1", "2026-10-03") and "AWS" in glacier.source
    # Ten days old, twenty of its thirty are billed all the same: 11.40870 * 20 / 30.
    young = planned(only_copies(own, policy, days=10), CLASSES)
    assert {line.store: line.early for line in read(young.bill).lines}["warm"] == 7_605_801


def test_what_it_costs_to_get_back_what_a_plan_archives():
    """To restore one at the usual speed 9.17816, for a week of a readable copy 4.89814, to read it 0.04710.

    The newest of the three stays readable, so it is twice that.
    """
    own = big((1, 50 * DAY), (2, 49 * DAY), (3, 48 * DAY))
    policy = tiers(Every(Unit.STEPS, 1), place=(Place(("warm@GLACIER",)),))
    [back] = read(planned(only_copies(own, policy), CLASSES).bill).back
    assert (back.place, back.price, back.bytes, back.files, back.days) == (
        "warm@GLACIER", "s3-glacier/us-east-1", 2 * SIZE, 2 * FILES, 7,
    )  # fmt: skip
    totals = {way.speed: way.total for way in back.ways}
    assert totals["standard"] == pytest.approx(2 * (9_178_161 + 4_898_136 + 47_104), abs=3)
    assert totals["bulk"] == pytest.approx(2 * (4_898_136 + 47_104), abs=3)
    assert [way.usual_s for way in back.ways] == [300, 5 * 3600, 12 * 3600]


def test_an_unknown_price_is_never_nothing():
    own = big((1, 50 * DAY), (2, 49 * DAY))
    policy = tiers(Every(Unit.STEPS, 1), place=(Place(("warm@GLACIER",)),))
    bill = read(planned(only_copies(own, policy), {"hot": S3["STANDARD"], "warm": S3["STANDARD_IA"]}).bill)
    assert bill.unpriced == ("warm@GLACIER",) and [(b.place, b.price, b.ways) for b in bill.back] == [
        ("warm@GLACIER", "", ())
    ]


def test_a_copy_for_an_archive_is_made_in_the_usual_class_first():
    """It is put and proven in infrequent access, whose thirty days are billed for a minute: 11.40870.

    hot             reading 117,760 * 0.0004 / 1,000 = 0.04710
    warm            117 requests an object put it, 119,808 * 0.01 / 1,000 = 1.19808; 0.11776 read it back; 9.12696 are
                    retrieved by us and 9.12696 by the provider
    warm@GLACIER    0.03072
    """
    own = big((1, 50 * DAY), (2, 49 * DAY))
    policy = tiers(Every(Unit.STEPS, 1), place=(Place(("warm@GLACIER",), steps_max=1), Place(("hot",))))
    plan = planned(site(own, policy), CLASSES)
    assert next((a.verb, a.to, a.storage_class) for a in plan.actions) == (Verb.COPY, "warm", "GLACIER")
    lines = {line.store: line for line in read(plan.bill).lines}
    warm, glacier = lines["warm"], lines["warm@GLACIER"]
    assert (lines["hot"].requests, lines["hot"].reading) == (47_104, 0)
    assert (warm.now, warm.after, warm.early) == (0, 0, 11_408_702)
    assert (warm.requests, warm.reading) == (1_198_080 + 117_760, 18_253_922)
    assert (glacier.after, glacier.requests, glacier.reading) == (3_285_998, 30_720, 0)
    # A store that is priced as an archive puts nothing there at once either.
    odd = {"hot": S3["STANDARD"], "warm": S3["GLACIER"], "warm@STANDARD": S3["STANDARD"]}
    lines = {line.store: line for line in read(planned(site(own, policy), odd).bill).lines}
    assert lines["warm@STANDARD"].requests == 599_040 + 47_104 and lines["warm"].requests == 30_720
    unpriced = {line.store for line in read(planned(site(own, policy), {"hot": S3["STANDARD"]}).bill).lines}
    assert unpriced == {"hot", "warm"}


def test_a_change_that_does_not_pay_is_not_made_and_says_so():
    """Above, the change costs 18.40240 and 90 days there 9.85799; staying costs 11.40870 for 30 days: even after 74.3.

    An hourly run's last three never get there: the newest stays readable anyway, and two are held back.
    """
    own = big((1, 10 * DAY), (2, 9 * DAY))
    for days, changes in ((84, set()), (85, {"1"})):
        rule, place = Younger(days * DAY_S, Anchor.NOW), (Place(("warm@GLACIER",), steps_max=1), Place(("warm",)))
        plan = planned(only_copies(own, tiers(rule, place=place)), CLASSES)
        assert {a.key.removeprefix("r/step-") for a in plan.actions if a.verb is Verb.RECLASS} == changes
        if not changes:
            [found] = [f for f in plan.findings if f.code == "does_not_pay"]
            assert found.text == (
                "it stays STANDARD_IA on warm: for the 74d it has at most, staying costs $28.14 and changing $28.26 "
                "(90 days are billed there at least; the change itself costs $18.40; it pays after 74d7h)"
            )
            assert plan.totals["withheld_moves"] == read(plan.bill).withheld == 1
    hourly = big(*((100 + n, (8 - n) * HOUR) for n in range(8)))
    archived = (Place(("warm@GLACIER",)),)
    plan = planned(only_copies(hourly, tiers(Last(3), place=archived), days=0), CLASSES)
    assert not [a for a in plan.actions if a.verb is Verb.RECLASS] and plan.totals["withheld_moves"] == 2
    forced = (Place(("warm@GLACIER",), cost_ignored=True),)
    plan = planned(only_copies(hourly, tiers(Last(3), place=forced), days=0), CLASSES)
    assert len([a for a in plan.actions if a.verb is Verb.RECLASS]) == 2 and "withheld_moves" not in plan.totals


def test_what_goes_to_another_provider_leaves_and_within_a_list_nothing_does():
    """912.696 GiB * 0.09 = 82.14265, and for nothing in the same region."""
    own = big((1, 400 * DAY), (2, 300 * DAY))
    policy = tiers(Every(Unit.STEPS, 1), place=(Place(("warm",), steps_max=1, cost_ignored=True), Place(("hot",))))
    for target, egress in (("gcs-nearline/us", 82_142_651), ("s3-standard-ia/us-east-1", 0)):
        lines = {
            line.store: line
            for line in read(planned(site(own, policy), {"hot": S3["STANDARD"], "warm": PRESETS[target]}).bill).lines
        }
        assert (lines["hot"].egress, lines["warm"].egress) == (egress, 0)
    outside = replace(S3["STANDARD_IA"], outside=True)
    lines = {
        line.store: line
        for line in read(planned(site(own, policy), {"hot": S3["STANDARD"], "warm": outside}).bill).lines
    }
    assert lines["warm"].egress == 82_142_651, "it is read back by us, who are not there"


@settings(max_examples=60)
@given(
    st.sampled_from(["STANDARD", "STANDARD_IA", "GLACIER_IR"]),
    st.sampled_from(["STANDARD_IA", "GLACIER_IR", "GLACIER", "DEEP_ARCHIVE"]),
    st.integers(10**6, 10**13),
    st.integers(1, 2000),
    st.integers(0, 200),
    st.integers(1, 300),
)
def test_a_change_held_back_would_not_have_paid(old: str, new: str, size: int, files: int, days: int, kept: int):
    """Against sums written out anew: at no day up to the last one does it cost less than staying, trash included."""
    c = checkpoint("r/step-1", 1, 10 * DAY, bytes=size, files=files)
    newest = checkpoint("r/step-2", 2, 9 * DAY, bytes=size, files=files)
    policy = tiers(
        Younger((10 + kept) * DAY_S, Anchor.NOW), place=(Place((f"warm@{new}",), steps_max=1), Place(("warm",)))
    )
    stands = (in_class(c, old, days), in_class(newest, old, days))
    plan = planned(site([], policy, stands), CLASSES)
    held_back = [f for f in plan.findings if f.code == "does_not_pay"]
    changed = [a for a in plan.actions if a.verb is Verb.RECLASS]
    assert len(held_back) + len(changed) == (old != new)
    event(f"{len(held_back)} held back")
    a, b, load = S3[old], S3[new], Load(size, files)
    here, there = (cost.rate(price, load) / 30 for price in (a, b))
    each = -(-size // files)
    parts = -(-each // max(512 * 2**20, -(-each // 10_000))) + 1 if each > 5 * GB else 0
    part_nano = b.put_nano if b.part_nano is None else b.part_nano
    assert b.put_nano is not None and a.get_nano is not None and part_nano is not None
    reads = 2 if b.restores else 1
    fees = Fraction(files * b.put_nano + files * parts * part_nano, 1000)
    fees += Fraction(size * a.retrieval_nano * reads, GIB) + (reads - 1) * Fraction(cost.gets(load) * a.get_nano, 1000)
    left = max(0, a.min_days - days)
    pays = [here * max(n, left) > there * max(n, b.min_days) + fees + here * left for n in range(kept + 1)]
    if held_back:
        assert not any(pays)
    elif changed and there < here:
        assert any(pays) or kept > 365
