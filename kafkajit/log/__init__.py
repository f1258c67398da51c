"""A partition's log on a disk: its segments, and the files beside them."""
