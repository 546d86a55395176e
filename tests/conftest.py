"""What all tests share: how hard Hypothesis tries, and where the data beside the repository is."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.properties import selection

ROOT = Path(__file__).resolve().parent.parent
ENGINES = ("tests/integrations/", "tests/gateway/", "tests/export/", "tests/bulk/test_ray")

# No deadline: a slow moment of the machine is not a fault of the parser.
settings.register_profile("local", max_examples=40, deadline=None)  # CI has 15 minutes; make test-deep takes 1,000
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)  # a commit passes, or it does not
settings.register_profile("deep", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "local"))


def pytest_configure(config: pytest.Config) -> None:
    """The seed that chooses formats is set before workers start, so that all of them choose the same."""
    selection.seed()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which formats the properties of this run took, so that it can be done again, and what was skipped of engines."""
    line = f"formats of the properties: {selection.VARIABLE}={selection.seed()} (tests/properties/selection.py)"
    terminalreporter.write_line(line)
    for line in skipped_lines(terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(line)


def skipped_lines(reports: Iterable[pytest.CollectReport | pytest.TestReport]) -> list[str]:
    """A line for each test of an engine that was skipped: its name, or that of its file, and why."""
    found = {}
    for report in reports:
        if report.nodeid.startswith(ENGINES):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            found[report.nodeid] = f"skipped: {report.nodeid} ({reason.removeprefix('Skipped: ')})"
    return sorted(found.values())


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded data beside the repository; where it is absent, tests that need it skip."""
    place = ROOT.parent / "shared"
    if not place.is_dir():
        pytest.skip("no ../shared beside this repository: the recorded outputs are not part of it")
    return place
