"""Metrics over HTTP: whole, in the form that was asked for, and only to whom they are told."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lifecycle.errors import LifecycleError
from tests.service.web.place import TOKEN, Place


def test_a_scrape_is_what_the_command_tells(place: Place):
    answer = place.client().get("/metrics")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name for family in text_string_to_metric_families(answer.text)}
    assert len(families) > 10 and all(name.startswith("lifecycle_") for name in families)
    assert place.client().get("/metrics", headers={"accept": "application/openmetrics-text"}).text.endswith("# EOF\n")


def test_metrics_are_open_only_where_somebody_says_so(place: Place):
    assert place.client(TOKEN).get("/metrics").status_code == 401
    assert place.client(TOKEN).get("/metrics", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    opened = place.client(TOKEN, metrics_open=True)
    assert opened.get("/metrics").status_code == 200 and opened.get("/ticks").status_code == 303
    assert opened.get("/metrics", headers={"host": "evil.example"}).status_code == 421


def test_a_failure_is_a_word(place: Place, monkeypatch: pytest.MonkeyPatch):
    views = place.views()

    def busy() -> None:
        raise LifecycleError("the index /secret/path is locked", code="index_busy")

    monkeypatch.setattr(views.outlooks, "world", busy)
    answer = place.client(views=views).get("/metrics")
    assert answer.status_code == 503 and answer.text == "index_busy\n"
