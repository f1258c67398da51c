"""The numbers that the kernels of lines take and return."""

from __future__ import annotations

from kafkajit.topics.status import FIRST_OF_TEXT

# Why `write_lines` returns, in addition to DONE, FULL and NEW_DOUBLE of `topics.status`:
(
    NO_NUMBER,  # a key or value is too short for its decoder
    BAD_CONTROL_KEY,
    BAD_MARKER,
    UNKNOWN_CODEC,
    NO_KEY,
    RAFT_RECORD,  # Python has to write the rest of its line
    PAYLOADS,  # Python has to write the rest of the line of an internal topic's record
    BAD_MESSAGE,  # a message's key and value do not fit into it
) = range(FIRST_OF_TEXT, FIRST_OF_TEXT + 8)

# How keys and values are printed: Kafka's decoder classes, and text that is written already.
STRING, LONG, INTEGER, BYTES, PREPARED = range(5)

# What keys and values are if they are an internal topic's payloads.
NO_TOPIC, COORDINATOR, METADATA, BY_PYTHON = range(4)

# Indices of `flags`.
(
    FLAG_CONTENTS,
    FLAG_METADATA,
    FLAG_KEY_DECODER,
    FLAG_VALUE_DECODER,
    FLAG_TOPIC,
    FLAG_FORM,
) = range(6)
FLAGS = 6
