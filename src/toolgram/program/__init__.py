"""From a specification to the table that parsers run: `state` is the table, `compiling` makes it."""
