"""Loads the answers of every topic; a topic is one module beside this one."""

from tests.truth import costs, drives, intervals, occupancy, params, sizes
from tests.truth.answers import RULES

MODULES = (costs, drives, intervals, occupancy, params, sizes)
TOPICS = frozenset(rule.topic for rule in RULES)
