"""Fixtures of these tests."""

from tests.deploy.image import image
from tests.deploy.kube import tools
from tests.deploy.scenes import claims, cluster

__all__ = ["claims", "cluster", "image", "tools"]
