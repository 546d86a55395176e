"""Put the playground together: one folder of static files, which loads nothing from elsewhere.

Strategy: the folder has the page, Pyodide from npm, toolgram's real wheel and the packages that it needs, all in one
archive (`packages.zip`), and the layout engine of `mermaid-render` with its font metrics.  Packages are as pip
installs them, without what is compiled: each of them runs without it.  `make site` calls this.

    python playground/build.py site/playground
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGE = ("index.html", "page.mjs", "drawing.mjs", "state.mjs", "worker.mjs")
SHOWING = ("style.css", "pane.mjs")  # shared with the page of a gateway and of an audit
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
PACKAGES = ("ijson", "jinja2", "lark", "markupsafe", "pyyaml", "six", "transitions")
LEFT_OUT = (".so", ".pyd", ".pyc", ".c", ".pyx", ".pxd")


def main(folder: Path) -> None:
    """Write the playground into a folder, which is emptied first."""
    modules = HERE / "node_modules" / "pyodide"
    if not modules.is_dir():
        sys.exit("playground/node_modules is missing; run `make site`, which installs it with npm")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "pyodide").mkdir(parents=True)
    for name in PAGE:
        shutil.copy(HERE / name, folder / name)
    for name in SHOWING:
        shutil.copy(ROOT / "src" / "toolgram" / "showing" / name, folder / name)
    for name in PYODIDE:
        shutil.copy(modules / name, folder / "pyodide" / name)
    shutil.copytree(ROOT / "suite" / "cases", folder / "suite" / "cases")  # for links to a case
    shutil.copy(ROOT / "suite" / "tools.json", folder / "suite" / "tools.json")
    with tempfile.TemporaryDirectory() as scratch:
        _write_packages(Path(scratch), folder / "packages.zip")
    _write_layout_engine(folder)
    sizes = {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    (folder / "sizes.json").write_text(json.dumps(sizes, indent=1), encoding="utf-8")
    print(f"{folder}: {len(sizes)} files, {sum(sizes.values()) / 1e6:.1f} MB")


def _write_packages(scratch: Path, archive: Path) -> None:
    """The wheel and its packages, without compiled modules."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(scratch / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (wheel,) = (scratch / "dist").glob("*.whl")
    pinned = [f"{name}=={version(name)}" for name in PACKAGES]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
    ]
    subprocess.run([*pip, "--target", str(scratch / "packages"), str(wheel), *pinned], check=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted((scratch / "packages").rglob("*")):
            if path.is_file() and path.suffix not in LEFT_OUT and "bin" not in path.relative_to(scratch).parts:
                packed.write(path, path.relative_to(scratch / "packages"))
        packed.write(HERE / "bridge.py", "bridge.py")


def _write_layout_engine(folder: Path) -> None:
    """What lays diagrams out, as plain scripts, with the widths of the letters of its font."""
    import mermaid_render
    from mermaid_render.fonts import metrics

    package = Path(mermaid_render.__file__).parent
    shutil.copy(package / "pele" / "pele.global.js", folder / "pele.js")
    shutil.copy(package / "pele" / "LICENSE", folder / "pele.LICENSE")
    widths = [{char: width for char, width in table.items() if len(char) == 1 and char < "ⷠ"} for table in metrics()]
    engine = (package / "renderer.js").read_text(encoding="utf-8")
    script = f"const fontMetrics = {json.dumps(widths)};\n{engine}"
    (folder / "layout.js").write_text(script, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
