"""Fetches real chat templates into `templates/` beside this file: `make templates`.

Strategy: the templates belong to their models, each under its own licence, so none is committed. llama.cpp collects
them, and the source distribution of llama-cpp-python carries llama.cpp; the version and its hash are pinned, so that
everyone sees the same templates. pip fetches it, with whatever index and proxy it is configured for, and checks the
hash. To know what it fetched, pip asks the distribution's build backend for metadata, which would install a compiler's
worth of packages; a backend of the same name that answers from the pin stands in for it, so nothing is built and
nothing of the distribution is run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
INSIDE = "vendor/llama.cpp/models/templates"
TEMPLATES = Path(__file__).parent / "templates"
STAMP = ".complete"

BACKEND_MODULE = "scikit_build_core/build.py"
BACKEND = f'''
from pathlib import Path

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    place = Path(folder) / "{PACKAGE.replace("-", "_")}-{VERSION}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\\nName: {PACKAGE}\\nVersion: {VERSION}\\n")
    return place.name
'''


def main() -> None:
    """Fetch them unless they are there already."""
    if _stamp(TEMPLATES) == SHA256:
        print(f"{_count(TEMPLATES)} templates of {PACKAGE} {VERSION} are there already: {TEMPLATES}")
        return
    with tempfile.TemporaryDirectory() as scratch:
        distribution = _download(Path(scratch))
        unpack(distribution, TEMPLATES)
    print(f"{_count(TEMPLATES)} templates of {PACKAGE} {VERSION}: {TEMPLATES}")


def _download(scratch: Path) -> Path:
    """The source distribution, whose hash pip has checked."""
    backend = scratch / "backend" / BACKEND_MODULE
    backend.parent.mkdir(parents=True)
    (backend.parent / "__init__.py").touch()
    backend.write_text(BACKEND, encoding="utf-8")
    wanted = scratch / "requirements.txt"
    wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
    folder = scratch / "distribution"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
    command += ["--no-binary", PACKAGE, "--require-hashes", "--requirement", str(wanted), "--dest", str(folder)]
    path = os.pathsep.join(filter(None, [str(scratch / "backend"), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=False)
    if done.returncode:
        sys.exit(f"pip could not fetch {PACKAGE} {VERSION}; it says why above")
    (distribution,) = folder.iterdir()
    return distribution


def unpack(distribution: Path, folder: Path) -> None:
    """The templates, by their bare names; the folder is replaced when all of them are written."""
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for name, data in _templates(distribution):
        (fresh / name).write_bytes(data)
    if not _count(fresh):
        sys.exit(f"{PACKAGE} {VERSION} has no templates in {INSIDE}")
    (fresh / STAMP).write_text(SHA256, encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def _templates(distribution: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(distribution) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if (
                member.isfile()
                and path.suffix == ".jinja"
                and PurePosixPath(*path.parts[1:-1]) == PurePosixPath(INSIDE)
            ):
                content = archive.extractfile(member)
                assert content is not None, "a regular file has content"
                yield path.name, content.read()


def _count(folder: Path) -> int:
    return len(list(folder.glob("*.jinja")))


def _stamp(folder: Path) -> str:
    try:
        return (folder / STAMP).read_text(encoding="utf-8")
    except OSError:
        return ""


if __name__ == "__main__":
    main()
