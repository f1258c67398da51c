"""Files on a disk, changed all or none."""
