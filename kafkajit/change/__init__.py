"""Change files on a disk, all or none."""
