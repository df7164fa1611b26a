"""Tells what is odd about a run, in sentences: flags of checkpoints and pointers, open uploads, archived copies."""

from __future__ import annotations

from lifecycle.core.model import Finding, Run


def oddities(run: Run) -> list[Finding]:
    """Findings on a run's flags, pointers, open uploads and checkpoints, whatever any policy says."""
    found = [_told(f"{run.store}:{key}", code, "warning") for key, code in run.flags]
    found += [_told(f"{run.store}:{p.key}", code, "note") for p in run.pointers for code in p.flags]
    found += [Finding(f"{run.store}:{key}", "in_progress", "note", "an upload to it is open") for key, _ in run.writing]
    found += [_told(o.id, code, "warning") for c in run.checkpoints for o in (c, *c.elsewhere) for code in o.flags]
    archived = "it must be restored before it can be read"
    return found + [Finding(c.id, "storage_archived", "note", archived) for c in run.checkpoints if not c.online]


def _told(subject: str, code: str, severity: str) -> Finding:
    return Finding(subject, code, severity, _FLAG_TEXT.get(code, code))


_FLAG_TEXT = {
    "foreign": "it holds files of another owner than the run: untouched",
    "identity_mismatch": "what its files say of its step is not what its name says: it counts for nothing",
    "members_missing": "members that it had before have vanished",
    "name_unusual": "a name in it has control, bidirectional or undecodable characters",
    "pending_delete": "its framework has put it aside for deletion",
    "commit_marker_missing": "all members are there but the commit marker is not",
    "step_unknown": "no layout tells its step: declare one, or give it a directory of its own, to have it judged",
    "several_names": "several runs share its directory: declare its layout, or give each its own, to have it judged",
    "metrics_cut": "it is so long that only its end was read: metrics of earlier checkpoints may be missing",
    "metrics_unread": "it could not be read: metrics of checkpoints may be missing",
    "duplicate_path": "another name leads to the same file or directory: both stay",
    "external_reference": "it points out of its store: if that lies in one under another mount, declare it (parents:)",
    "open_elsewhere": "somebody has something open there: its run counts as live; remove it if it was left behind",
    "pointer_loop": "the link leads back to itself",
    "copy_damaged": "this copy is no longer what was copied: look at it, and move it away for a new one to be made",
    "copy_differs": "the copy of that name elsewhere is of something else that stood here before",
}
