"""xgrammar is imported before anything else asks for it, with a stub where torch is not installed: an export must not
depend on which test ran first."""

import contextlib

with contextlib.suppress(ImportError):
    from tests.export.engines import import_xgrammar

    import_xgrammar()
