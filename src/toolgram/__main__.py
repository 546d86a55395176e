"""`python -m toolgram` is the `toolgram` command."""

from toolgram.cli import main

if __name__ == "__main__":
    main()
