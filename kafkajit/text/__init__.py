"""What kafka-dump-log.sh prints: logs and the files beside them → lines, or objects of JSON."""
