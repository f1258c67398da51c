"""Make a broker's folder out of tiered storage or a backup."""
