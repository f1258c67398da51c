"""The configs of topics in __cluster_metadata, as far as a log.dirs folder has them.

A controller writes them there, and a broker keeps a copy of its own: the log, and snapshots of its
records. Configs that a topic does not have are the brokers' defaults, which are not in it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from kafkajit.change.files import identity
from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import partition_of
from kafkajit.reader import iter_records
from kafkajit.topics.structs import decode_payloads
from kafkajit.walk.damage import DROPMALFORMED

logger = logging.getLogger("kafkajit")

METADATA_FOLDER = "__cluster_metadata-0"
_TOPIC = "cluster_metadata"
_LOG = re.compile(r"\d{20}\.log", re.ASCII)
_SNAPSHOT = re.compile(r"\d{20}-\d{10}\.checkpoint", re.ASCII)
_TOPIC_CONFIG = 2  # ConfigResource.Type.TOPIC

Configs = Mapping[str, Mapping[str, str]]  # by topic and name


def topic_configs(log_dirs: Path) -> Configs:
    """The configs that topics have of their own; none without __cluster_metadata.

    >>> topic_configs(Path("/no/such/folder"))
    {}
    """
    folder = log_dirs / METADATA_FOLDER
    if not folder.is_dir():
        return {}
    names = sorted(path.name for path in folder.iterdir())
    files = tuple(folder / name for name in _files(names))
    return _read(files, tuple(identity(file) for file in files))


def cleanup_policies(folder: Path) -> set[str]:
    """The policies that the topic of a partition's folder has of its own.

    >>> cleanup_policies(Path("/no/such/folder/orders-0"))
    set()
    """
    topic = partition_of(folder).topic
    text = topic_configs(folder.parent).get(topic or "", {}).get("cleanup.policy", "")
    return set(map(str.strip, text.split(","))) - {""}


def _files(names: Sequence[str]) -> list[str]:
    """The newest snapshot, and the logs that may have later records."""
    snapshots = [name for name in names if _SNAPSHOT.fullmatch(name)]
    return [*snapshots[-1:], *(name for name in names if _LOG.fullmatch(name))]


@lru_cache(maxsize=4)  # all partitions of a log.dirs folder ask for the same
def _read(paths: Sequence[Path], _: tuple[object, ...]) -> Configs:
    configs: dict[str, dict[str, str]] = {}
    topics: dict[str, str] = {}  # names by id
    for path in paths:
        try:
            for records in iter_records(str(path), columns=["value"], mode=DROPMALFORMED):
                decoded = decode_payloads(_TOPIC, None, records["value"], lenient=True)
                for text in decoded.field("value").to_pylist():
                    if text is not None:
                        _take(json.loads(text), configs, topics)
        except (OSError, KafkaJitError) as error:
            logger.warning("%s", error)
    return configs


def _take(
    record: Mapping[str, object], configs: dict[str, dict[str, str]], topics: dict[str, str]
) -> None:
    kind, data = record.get("type"), record.get("data")
    if not isinstance(data, dict):
        return
    if kind == "TOPIC_RECORD":
        topics[data["topicId"]] = data["name"]
    elif kind == "REMOVE_TOPIC_RECORD":
        configs.pop(topics.pop(data["topicId"], ""), None)
    elif kind == "CONFIG_RECORD" and data["resourceType"] == _TOPIC_CONFIG:
        of_topic = configs.setdefault(data["resourceName"], {})
        if data["value"] is None:
            of_topic.pop(data["name"], None)
        else:
            of_topic[data["name"]] = data["value"]
