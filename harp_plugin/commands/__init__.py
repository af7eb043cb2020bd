"""The commands of `harp`, one file each."""
