"""kafkajit side by side with other readers of the same bytes; `python -m asv_bench.peers`."""
