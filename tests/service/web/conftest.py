"""The site that all tests of the pages share."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.service.web.place import Place


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> "Place":
    from tests.service.web.place import build  # what it needs need not be installed

    return build(tmp_path_factory.mktemp("site"))
