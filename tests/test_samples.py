"""The sample trees arrive as their frameworks left them."""

import os
from pathlib import Path


def test_samples_keep_links_and_times(samples: Path):
    files = [Path(top, name) for top, _, names in os.walk(samples) for name in names]
    assert any(path.is_symlink() for path in files)
    newest = max(path.lstat().st_mtime for path in files)
    assert newest < (samples.parent.parent / "samples.done").stat().st_mtime
