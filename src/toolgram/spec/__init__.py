"""What a format is: its two files, read and checked. Each module has one step; `files` joins them."""
