"""`make release-check`: what is released is built, checked, installed into empty environments, typed and run.

Strategy: the wheel is built from the unpacked sdist, so that a file missing there is noticed. Each Python that is here
and new enough gets an empty environment with the wheel, and runs a program in it.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SAMPLE = Path(__file__).with_name("sample.py")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def main() -> None:
    """Build and check; the first thing that fails ends it."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        sdist, wheel = _built(scratch)
        run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
        for version in PYTHONS:
            if python := _found(version):
                _installed(scratch / version, python, wheel)
                print(f"release-check: installed and run on Python {version}")
            else:
                print(f"release-check: Python {version} is not here")
        _typed(scratch / "types", wheel)
        _export(wheel)
    print("release-check: all is well")


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """A command that must succeed."""
    subprocess.run([str(word) for word in command], check=True, cwd=cwd)


def _built(scratch: Path) -> tuple[Path, Path]:
    build = (sys.executable, "-m", "hatchling", "build", "--directory")
    run(*build, scratch / "dist", "--target", "sdist", cwd=ROOT)
    (sdist,) = (scratch / "dist").glob("*.tar.gz")
    shutil.unpack_archive(sdist, scratch / "source", filter="data")
    (source,) = (scratch / "source").iterdir()
    run(*build, scratch / "dist", "--target", "wheel", cwd=source)
    (wheel,) = (scratch / "dist").glob("*.whl")
    return sdist, wheel


def _found(version: str) -> Path | None:
    """A Python of this version, on the path or among those of pyenv."""
    others = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}*/bin/python{version}"))
    for place in (shutil.which(f"python{version}"), *others):
        if place and subprocess.run([place, "-c", "import venv"], capture_output=True).returncode == 0:
            return Path(place)
    return None


def _installed(folder: Path, python: str | Path, wheel: Path, *packages: str) -> Path:
    run(python, "-m", "venv", folder)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, wheel, *packages)
    run(folder / "bin" / "python", SAMPLE, cwd=folder)
    return folder / "bin"


def _typed(folder: Path, wheel: Path) -> None:
    programs = _installed(folder, sys.executable, wheel, "mypy", "pyright")
    run(programs / "mypy", "--strict", SAMPLE, cwd=folder)
    run(programs / "pyright", "--pythonpath", programs / "python", SAMPLE, cwd=folder)


def _export(wheel: Path) -> None:
    """The extra `export` must not bring torch. Nothing is downloaded but what pip reads to know what it needs."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    told = subprocess.run([*command, f"{wheel}[export]"], check=True, capture_output=True, text=True).stdout
    names = {each["metadata"]["name"] for each in json.loads(told)["install"]}
    if "torch" in names:
        sys.exit("release-check: the extra `export` brings torch")


if __name__ == "__main__":
    main()
