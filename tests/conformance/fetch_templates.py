"""Fetches real chat templates into `templates/` beside this file: `make templates`.

Strategy: the templates belong to their models, each under its own licence, so none is committed. Two projects collect
them, and their source distributions carry them: llama.cpp (in that of llama-cpp-python) and vLLM (its examples). The
versions and their hashes are pinned, so that everyone sees the same templates. pip fetches them, with whatever index
and proxy it is configured for, and checks the hashes. To know what it fetched, pip asks a distribution's build backend
for metadata, which would install a compiler's worth of packages; a backend of the same name that answers from the pin
stands in for it, so nothing is built and nothing of the distribution is run.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

TEMPLATES = Path(__file__).parent / "templates"
STAMP = ".complete"


@dataclass(frozen=True, slots=True)
class Source:
    """A source distribution, the folder in it that has templates, and the module of its build backend."""

    package: str
    version: str
    sha256: str
    inside: str
    backend: str


SOURCES = (
    Source("llama-cpp-python", "0.3.36", "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
           "vendor/llama.cpp/models/templates", "scikit_build_core/build.py"),
    Source("vllm", "0.24.0", "0862453adc1f3339f1a0c9dca1179c34d6ed6e118f87b6e5bddd120af614ac66", "examples",
           "setuptools/build_meta.py"),
)  # fmt: skip

BACKEND = """
from pathlib import Path

def get_requires_for_build_wheel(config_settings=None):
    return []

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    place = Path(folder) / "{module}-{version}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\\nName: {package}\\nVersion: {version}\\n")
    return place.name
"""
HASHES = "\n".join(source.sha256 for source in SOURCES)


def main() -> None:
    """Fetch them unless they are there already."""
    known = " and ".join(f"{source.package} {source.version}" for source in SOURCES)
    stamp = TEMPLATES / STAMP
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == HASHES:
        print(f"the templates of {known} are there already: {TEMPLATES}")
        return
    with tempfile.TemporaryDirectory() as scratch:
        unpack([(source, _download(source, Path(scratch) / source.package)) for source in SOURCES], TEMPLATES)
    print(f"{len([*TEMPLATES.glob('*.jinja')])} templates of {known}: {TEMPLATES}")


def _download(source: Source, scratch: Path) -> Path:
    """The source distribution, whose hash pip has checked."""
    backend = scratch / "backend" / source.backend
    backend.parent.mkdir(parents=True)
    (backend.parent / "__init__.py").touch()
    module = source.package.replace("-", "_")
    backend.write_text(BACKEND.format(module=module, package=source.package, version=source.version), encoding="utf-8")
    wanted = scratch / "requirements.txt"
    wanted.write_text(f"{source.package}=={source.version} --hash=sha256:{source.sha256}\n", encoding="utf-8")
    folder = scratch / "distribution"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
    command += ["--no-binary", source.package, "--require-hashes", "--requirement", str(wanted), "--dest", str(folder)]
    path = os.pathsep.join(filter(None, [str(scratch / "backend"), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=False)
    if done.returncode:
        sys.exit(f"pip could not fetch {source.package} {source.version}; it says why above")
    (distribution,) = folder.iterdir()
    return distribution


def unpack(fetched: Sequence[tuple[Source, Path]], folder: Path) -> None:
    """The templates, by their bare names; the folder is replaced when all of them are written."""
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for source, distribution in fetched:
        templates = dict(_templates(source, distribution))
        if not templates:
            shutil.rmtree(fresh)
            sys.exit(f"{source.package} {source.version} has no templates in {source.inside}")
        for name, data in templates.items():
            (fresh / name).write_bytes(data)
    (fresh / STAMP).write_text(HASHES, encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def _templates(source: Source, distribution: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(distribution) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            inside = PurePosixPath(*path.parts[1:-1]) == PurePosixPath(source.inside)
            if member.isfile() and path.suffix == ".jinja" and inside:
                content = archive.extractfile(member)
                assert content is not None, "a regular file has content"
                yield path.name, content.read()


if __name__ == "__main__":
    main()
