"""Protobuf: schemas, and values by the rules of its wire format."""
