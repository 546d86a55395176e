"""The font for symbols of line ends, blanks and tabs, which most systems lack: docs/symbols.woff.

Strategy: pages and the playground show a line end as U+2424, a blank as U+2420 and a tab as U+2409. DejaVu Sans Mono
(Debian's fonts-dejavu-core) draws a return arrow, an open box and a tab arrow. Here they get these code points, in a
font of three glyphs with a name of its own, as DejaVu's license asks. Write it by
`python -m tests.symbol_font DejaVuSansMono.ttf`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

PLACE = Path(__file__).resolve().parents[1] / "docs" / "symbols.woff"
SYMBOLS = {0x2424: 0x21B5, 0x2420: 0x2423, 0x2409: 0x21E5}


def main(source: str) -> None:
    """Write the font from that of the file `source`."""
    font = TTFont(source)
    glyphs = font.getBestCmap()
    for table in font["cmap"].tables:
        table.cmap = {symbol: glyphs[drawn] for symbol, drawn in SYMBOLS.items()} if table.isUnicode() else {}
    options = Options()
    options.drop_tables += ["GSUB", "GPOS", "GDEF", "DSIG", "FFTM", "kern"]
    options.hinting = False
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=list(SYMBOLS))
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 3, 4, 6, 16):
            record.string = "ToolgramSymbols" if record.nameID == 6 else "Toolgram Symbols"
    font.flavor = "woff"
    font.save(PLACE)


if __name__ == "__main__":
    main(sys.argv[1])
