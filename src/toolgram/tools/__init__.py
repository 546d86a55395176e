"""The functions that a request declares: read from any shape, and checked against."""
