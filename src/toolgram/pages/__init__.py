"""The documentation pages of formats, and the tables inside other pages."""
