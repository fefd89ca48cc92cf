"""What pyproject.toml cannot say: every package inside core/ is one of headlight, whose name it has once it is installed."""

from setuptools import find_packages, setup

setup(packages=["headlight", *(f"headlight.{name}" for name in find_packages("core")), "headlight.models"])
