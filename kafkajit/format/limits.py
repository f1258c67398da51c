"""The largest and smallest values of Java's int and long."""

MAX_INT32 = 2**31 - 1
MIN_INT64 = -(2**63)
MAX_INT64 = 2**63 - 1
