"""A run says which tests of engines it skipped: `make test` has none of the servers that `make test-vllm` brings."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]


def test_each_test_of_an_engine_that_is_skipped_is_named(pytester: pytest.Pytester) -> None:
    """A file that asks for a server, and a single test; not a test of another part."""
    pytester.makeini("[pytest]\naddopts = --import-mode=importlib\npythonpath = " + str(ROOT))
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    for place, text in {
        "tests/integrations/test_server.py": "import pytest\n\npytest.importorskip('no_server', reason='none here')\n",
        "tests/gateway/test_one.py": "import pytest\n\n\ndef test_it():\n    pytest.skip('no data')\n",
        "tests/derive/test_other.py": "import pytest\n\n\ndef test_it():\n    pytest.skip('of another part')\n",
    }.items():
        path = pytester.path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    said = pytester.runpytest_inprocess("tests").outlines
    assert [line for line in said if line.startswith("skipped: ")] == [
        "skipped: tests/gateway/test_one.py::test_it (no data)",
        "skipped: tests/integrations/test_server.py (none here)",
    ]
