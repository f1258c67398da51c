"""Starts a Spark session on this machine in a third of the time that pyspark takes.

One function does it: `local_session`. It starts `java` itself (`jvm`) from an archive of Spark's
parsed classes (`class_archive`, made by `archive_maker`), and forks Python's workers from a process
that has imported everything (`fork_server`). All of that depends on how Spark starts and may stop
working with another release of Spark: KAFKAJIT_QUICK_START=0 switches it off, and the session then
starts as pyspark starts it.
"""
