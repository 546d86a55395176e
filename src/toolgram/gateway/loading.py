"""The model of a gateway, from what is at hand: a template file, a model's files, a GGUF file, or the server itself.

Strategy: the template decides. If none is given, llama.cpp's own server says which one it has. The format is derived
from it; a format that is named goes before that, and the template's analysis is still used for how messages are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolgram.derive.deriving import derive_format
from toolgram.derive.doctor import diagnose
from toolgram.derive.errors import TemplateError
from toolgram.derive.sources import Source
from toolgram.errors import ToolgramError
from toolgram.formats import Format
from toolgram.gateway.model import Model, SpecialText

if TYPE_CHECKING:
    from toolgram.gateway.engine import Found


class TemplateFiles(NamedTuple):
    """A chat template, and what belongs to it."""

    template: str
    bos_token: str = ""
    eos_token: str = ""
    special: tuple[str, ...] = ()


def files_of(source: Source) -> TemplateFiles:
    """Return what derivation's reader of model files found. Raises TemplateError if there is no template."""
    special = tuple(dict.fromkeys(text for text in [*source.special, *source.ends] if text))
    return TemplateFiles(source.template(None), source.bos_token, source.eos_token, special)


def load_model(
    found: Found,
    files: TemplateFiles | None = None,
    fmt: Format | None = None,
    name: str | None = None,
    special_text: SpecialText = "neutralise",
    served: str | None = None,
) -> Model:
    """Return the model of a server: `name` for clients, `served` for the server.

    Raises ToolgramError if there is no template, or it cannot be used.
    """
    if files is None:
        if not found.template:
            raise ToolgramError(
                f"the server ({found.kind}) does not say its chat template: name it with --model-files DIR, "
                "--gguf FILE or --template FILE"
            )
        files = TemplateFiles(found.template, found.bos_token, found.eos_token)
    bos, eos = files.bos_token or found.bos_token, files.eos_token or found.eos_token
    fmt = format_of(files, fmt)
    served = served or (name if name in found.models else next(iter(found.models), None))
    return Model(
        name or _without_folders(served or "model"), fmt, files.template, bos, eos, files.special, special_text, served
    )


def _without_folders(name: str) -> str:
    """Return a model's name for clients: the last folder or file of a path. Ids of a hub stay."""
    path = name.replace("\\", "/").rstrip("/")
    is_path = path.startswith(("/", "./", "../", "~")) or "\\" in name or path.endswith(".gguf")
    return path.rpartition("/")[2] if is_path else name


def format_of(files: TemplateFiles, fmt: Format | None = None) -> Format:
    """Return the format of a chat template. With `fmt`, return that format, and how the template takes messages.

    Raises TemplateError if the template cannot be used and no format is given.
    """
    try:
        derived = derive_format(files.template, bos_token=files.bos_token, eos_token=files.eos_token)
    except TemplateError:
        if fmt is None:
            raise
        return fmt
    return derived if fmt is None else Format(fmt.spec, fmt.machine_text, derived.report)


def not_fitting(model: Model) -> str:
    """Return what the format of a model does not read of what its template writes; "" for nothing."""
    report = model.fmt.report
    if report is None or report.analysis is None:
        return ""
    found = diagnose(model.fmt, model.fmt)  # which has the report of its template
    better = f" {found.better} reads {found.better_read}." if found.better else ""
    return "" if found.ok else f"{found.format} reads {found.read} of {found.written} messages of the template.{better}"
