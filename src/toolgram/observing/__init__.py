"""What a format shows when its own parser reads made outputs; exports, derivation and diagrams build on it."""
