"""The options of commands that print keys and values with a schema as JSON."""

from __future__ import annotations

import argparse

from kafkajit.text import VALUE_DECODERS

SIDES = ("value", "key")


def add_value_options(parser: argparse.ArgumentParser) -> None:
    """Add the decoders of keys and values, and their schemas."""
    for side in SIDES:
        parser.add_argument(
            f"--{side}-decoder",
            choices=VALUE_DECODERS,
            help=f"decode {side}s with their schemas, and print them as JSON; for a malformed "
            f"{side}, print the error",
        )
    for side in SIDES:
        parser.add_argument(
            f"--{side}-schema",
            metavar="SCHEMA",
            help=f"with --{side}-decoder: the schema to read {side}s into, as text or the path of "
            f"an .avsc or .proto file; without --schemas, all {side}s must have been written "
            "with it",
        )
    for side in SIDES:
        parser.add_argument(
            f"--{side}-message",
            metavar="NAME",
            help=f"with --{side}-schema: the Protobuf message to read {side}s into, if the "
            "schema has several",
        )
    parser.add_argument(
        "--schemas",
        metavar="PATH",
        help="where to find the schemas that keys and values name: the log of a schema registry, "
        ".avsc or .proto files, or a .json file with a registry's answer (default: the folder "
        "_schemas-0 beside the log's folder)",
    )


def check_value_options(options: argparse.Namespace) -> None:
    """Raise a ValueError for options that need another one."""
    for side in SIDES:
        if getattr(options, f"{side}_decoder") is None:
            if getattr(options, f"{side}_schema") is not None:
                raise ValueError(f"--{side}-schema needs --{side}-decoder")
        elif getattr(options, f"{side}_decoder_class", None) is not None:
            raise ValueError(f"pass --{side}-decoder or --{side}-decoder-class, not both")
        if getattr(options, f"{side}_message") and getattr(options, f"{side}_schema") is None:
            raise ValueError(f"--{side}-message needs --{side}-schema")
    if options.schemas is not None and options.value_decoder is options.key_decoder is None:
        raise ValueError("--schemas needs --value-decoder or --key-decoder")
