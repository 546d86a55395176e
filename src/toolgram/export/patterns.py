"""Formats of JSON Schema as expressions, defined by regular expressions."""

from __future__ import annotations

from functools import lru_cache

from toolgram.export.ecmascript import pattern_text
from toolgram.export.expressions import Expr

_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_FOURTH = r"([02468][048]|[13579][26])"  # two digits that are divisible by four
_DATE = (
    r"([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    rf"|([0-9]{{2}}(0[48]|[2468][048]|[13579][26])|{_FOURTH}00)-02-29)"
)
_HOST = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_SPAN = r"([0-9]+H([0-9]+M)?([0-9]+S)?|[0-9]+M([0-9]+S)?|[0-9]+S)"
_IN_URI = r"([A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})"
FORMATS = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}[Tt]{_TIME}$",
    "duration": f"^P([0-9]+W|([0-9]+Y([0-9]+M)?([0-9]+D)?|[0-9]+M([0-9]+D)?|[0-9]+D)(T{_SPAN})?|T{_SPAN})$",
    "email": rf"^{_ATOM}+(\.{_ATOM}+)*@{_HOST}$",
    "hostname": f"^{_HOST}$",
    "ipv4": rf"^{_BYTE}(\.{_BYTE}){{3}}$",
    "ipv6": r"^[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*$",
    "uuid": "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
    "uri": rf"^[A-Za-z][A-Za-z0-9+.-]*:(//\[[0-9A-Fa-f:.]+\]|{_IN_URI}){_IN_URI}*(#{_IN_URI}*)?$",
}
# Formats whose regular expression enforces the form, but not every rule.
FORMS_ONLY = {
    "email": "how long its parts are",
    "hostname": "how long its parts are",
    "ipv6": "how many groups it has",
    "uri": "what its host and port may be",
}


@lru_cache(maxsize=64)
def format_text(name: str) -> Expr | None:
    """Return the texts of a format; None if the format is not known."""
    return pattern_text(FORMATS[name]) if name in FORMATS else None
