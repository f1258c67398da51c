"""Tables → the logs of partitions: what producers and brokers do, without either."""
