"""Observe a format by parsing sample outputs with its own parser; exports, derivation and diagrams build on this."""
