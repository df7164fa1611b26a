"""``policy check``: every error in policies, with its place."""

from __future__ import annotations

from pathlib import Path

from lifecycle.cli.desk import Desk
from lifecycle.core.units import escape
from lifecycle.render.report import plural


def check_policies(desk: Desk, files: list[Path]) -> int:
    """``lifecycle policy check``: files alone, or the whole configuration with its policies."""
    from lifecycle.config.policies import load_policies
    from lifecycle.config.problems import InvalidFiles

    try:
        policies = load_policies(files) if files else desk.settings.policies
    except InvalidFiles as e:
        problems = [p._replace(text=desk.seams.secrets.hide(p.text)) for p in e.problems]
        found = [{"place": str(p.place), "message": p.text, "code": p.code} for p in problems]
        lines = [f"{p.place}: {escape(p.text)}" for p in problems]
        desk.answer({"problems": found, "exit_code": e.exit_code}, [*lines, "", plural(len(found), "error")])
        return e.exit_code
    rows = [f"ok  {escape(p.name)}  ({escape(p.source)})" for p in policies]
    desk.answer(
        {"problems": [], "policies": [{"name": p.name, "source": p.source, "digest": p.digest} for p in policies]},
        [*rows, "", "All of them can be used." if len(policies) != 1 else "It can be used."],
    )
    return 0
