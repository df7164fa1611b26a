"""Who answers which case: rules by topic, by the inputs that a case names, and by its id where those leave a choice."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Inputs = Mapping[str, Any]
Answer = Callable[[Inputs], Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """Answers cases of one topic that name all of these inputs, and whose id matches."""

    topic: str
    needs: frozenset[str]
    named: re.Pattern[str]
    answer: Answer

    def fits(self, case: Mapping[str, Any]) -> bool:
        return (
            case["topic"] == self.topic
            and self.needs <= case["inputs"].keys()
            and self.named.search(case["id"]) is not None
        )


RULES: list[Rule] = []


def answers(topic: str, *needs: str, named: str = "") -> Callable[[Answer], Answer]:
    """Enter a function as the answer to such cases; of several that fit, the one with most needs is asked."""

    def enter(answer: Answer) -> Answer:
        RULES.append(Rule(topic, frozenset(needs), re.compile(named), answer))
        return answer

    return enter


class NoAnswer(Exception):
    """Nothing here computes what a case asks for."""


def ask(case: Mapping[str, Any]) -> Any:
    """What our functions say to a case.

    Raises:
        NoAnswer: no rule fits.
    """
    fitting = [rule for rule in RULES if rule.fits(case)]
    if not fitting:
        raise NoAnswer(f"nothing answers {case['topic']} from {', '.join(sorted(case['inputs']))}")
    return max(fitting, key=lambda rule: (bool(rule.named.pattern), len(rule.needs))).answer(case["inputs"])
