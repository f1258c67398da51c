"""Tables → partitions' logs: what producers and brokers do, without either of them."""
