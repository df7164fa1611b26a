"""Loads the answers of every topic; a topic is one module beside this one."""

from tests.truth import costs, params, sizes
from tests.truth.answers import RULES

MODULES = (costs, params, sizes)
TOPICS = frozenset(rule.topic for rule in RULES)
