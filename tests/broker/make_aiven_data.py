"""Make tests/data/objects/aiven-* again: what a broker keeps with Aiven's plugin.

    git clone https://github.com/Aiven-Open/tiered-storage-for-apache-kafka
    python tests/broker/make_aiven_data.py tiered-storage-for-apache-kafka

Compiles the plugin without its Iceberg mode. A Kafka 4.1.1 then copies segments with it into a
folder, with each of the settings in FORMS; one per start of the broker. The RSA keys are made here,
for these tests alone. tests/data/README.md describes the folders. Made of commit 8fb15816.

Needs Java 17 with javac, and Maven the first time; cryptography makes the keys.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from broker import AIVEN, classpath, library, running_broker
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from make_tiered_data import REMOTE, compiled_traffic, emptied, finish, keep_logs, traffic

MODULES = ("commons", "core", "storage/core", "storage/filesystem")
PACKAGE = "io/aiven/kafka/tieredstorage"
ICEBERG = ("iceberg", "IcebergRemoteStorageManager.java")  # its sources
PARTITIONS = ("orders-0",)
KEYS = {"first": 2048, "second": 3072}  # bits
KEYS_KIND = "keys"

# The types that the rest of the plugin names; a broker whose segment.format is kafka needs no more.
STUBS = {
    f"{PACKAGE}/IcebergRemoteStorageManager.java": """
package io.aiven.kafka.tieredstorage;

class IcebergRemoteStorageManager extends KafkaRemoteStorageManager {
    IcebergRemoteStorageManager(
            org.slf4j.Logger log, org.apache.kafka.common.utils.Time time,
            io.aiven.kafka.tieredstorage.config.RemoteStorageManagerConfig config) {
        super(log, time, config);
    }
}
""",
    f"{PACKAGE}/iceberg/StructureProvider.java": """
package io.aiven.kafka.tieredstorage.iceberg;

public interface StructureProvider extends org.apache.kafka.common.Configurable {}
""",
    f"{PACKAGE}/iceberg/NamespaceAwareCachingCatalog.java": """
package io.aiven.kafka.tieredstorage.iceberg;

import org.apache.iceberg.catalog.Catalog;

public final class NamespaceAwareCachingCatalog {
    public static Catalog wrap(Catalog catalog, long expirationMs) {
        return catalog;
    }
}
""",
    "org/apache/iceberg/catalog/Catalog.java": """
package org.apache.iceberg.catalog;

public interface Catalog {
    void initialize(String name, java.util.Map<String, String> properties);
}
""",
    "org/apache/iceberg/catalog/Namespace.java": """
package org.apache.iceberg.catalog;

public final class Namespace {
    public static Namespace empty() {
        return new Namespace();
    }

    public static Namespace of(String... levels) {
        return new Namespace();
    }
}
""",
}

Settings = Mapping[str, str]
COMPRESSED = {"compression.enabled": "true"}
PREFIX = {"key.prefix": "tier/a-b_"}  # no slash at its end
FIELDS = "custom.metadata.fields.include"


def encrypted(*ids: str) -> dict[str, str]:
    """Settings to encrypt with the first of some keys, and to know them all."""
    return {
        "encryption.enabled": "true",
        "encryption.key.pair.id": ids[0],
        "encryption.key.pairs": ",".join(ids),
    }


# The settings of each start of a form's broker.
FORMS: Mapping[str, Sequence[Settings]] = {
    "aiven-plain": [{}],
    "aiven-compressed": [COMPRESSED | {"key.prefix": "some/prefix/"}],
    "aiven-encrypted": [encrypted("first")],
    "aiven-compressed-encrypted": [COMPRESSED | encrypted("first")],
    "aiven-mixed": [
        PREFIX | COMPRESSED | {"chunk.size": "700", "compression.heuristic.enabled": "true"},
        PREFIX | encrypted("first") | {FIELDS: "REMOTE_SIZE"},
        PREFIX
        | COMPRESSED
        | encrypted("second", "first")
        | {"chunk.size": "50000", FIELDS: "REMOTE_SIZE,OBJECT_PREFIX,OBJECT_KEY"},
    ],
}


def main(source: Path, work: Path) -> None:
    """Run a broker for each form, and keep its folders."""
    traffic_classes = compiled_traffic(work)
    plugin = compiled_plugin(source, work / "plugin")
    keys = emptied(KEYS_KIND)
    for name, bits in KEYS.items():
        write_keys(keys, name, bits)
    for form, starts in FORMS.items():
        target = emptied(form)
        folder = work / form
        root = folder / "remote"
        root.mkdir(parents=True)
        for run, settings in enumerate(starts):
            config = REMOTE | plugin_config(plugin, root, keys, settings)
            with running_broker(folder, config) as broker:
                traffic(broker, traffic_classes, "write", str(run), *PARTITIONS)
        keep_logs(folder / "logs", target / "logs", PARTITIONS)
        shutil.copytree(root, target / "remote")
        check(form, target)
    finish([*FORMS, KEYS_KIND])


def compiled_plugin(source: Path, work: Path) -> Path:
    """Compile the plugin's modules and the stubs; return the folder of classes."""
    stubs, classes = work / "stubs", work / "classes"
    for name, text in STUBS.items():
        path = stubs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    roots = [source / module / "src" / "main" / "java" for module in MODULES]
    sources = [
        path
        for root in roots
        for path in sorted(root.rglob("*.java"))
        if not set(ICEBERG) & set(path.relative_to(root).parts)
    ]
    files = work / "files"
    files.write_text("".join(f"{path}\n" for path in (*sources, *sorted(stubs.rglob("*.java")))))
    jars = classpath(library(AIVEN) / "*")
    subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", jars, f"@{files}"], check=True)
    return classes


def write_keys(folder: Path, name: str, bits: int) -> None:
    """Write a key pair as the plugin reads it: PKCS#8 and X.509, in PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    pem = serialization.Encoding.PEM
    form, naked = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private_key_file(folder, name).write_bytes(key.private_bytes(pem, form, naked))
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    public_key_file(folder, name).write_bytes(public)


def private_key_file(folder: Path, name: str) -> Path:
    """The file of a private key."""
    return folder / f"{name}.private.pem"


def public_key_file(folder: Path, name: str) -> Path:
    """The file of a public key."""
    return folder / f"{name}.public.pem"


def plugin_config(plugin: Path, root: Path, keys: Path, settings: Settings) -> dict[str, str]:
    """Return the broker's settings for the plugin."""
    options = {
        "storage.backend.class": (
            "io.aiven.kafka.tieredstorage.storage.filesystem.FileSystemStorage"
        ),
        "storage.root": str(root),
        "chunk.size": "1000",
        **settings,
    }
    for name in filter(None, settings.get("encryption.key.pairs", "").split(",")):
        stem = f"encryption.key.pairs.{name}"
        options[f"{stem}.private.key.file"] = str(private_key_file(keys, name))
        options[f"{stem}.public.key.file"] = str(public_key_file(keys, name))
    return {
        "remote.log.storage.manager.class.name": (
            "io.aiven.kafka.tieredstorage.RemoteStorageManager"
        ),
        "remote.log.storage.manager.class.path": os.pathsep.join(
            [str(plugin), f"{library(AIVEN)}/*"]
        ),
        **{f"rsm.config.{name}": value for name, value in options.items()},
    }


def check(form: str, target: Path) -> None:
    """End if something is missing that tests rely on."""
    manifests = [json.loads(path.read_text()) for path in target.rglob("*.rsm-manifest")]
    data_keys = [one.get("encryption", {}).get("dataKey", ":") for one in manifests]
    ids = {key.partition(":")[0] for key in data_keys}
    compressions = {one["compression"] for one in manifests}
    indexes = [one["segmentIndexes"] for one in manifests]
    print(f"{form}: {len(manifests)} segments, compression {compressions}, keys {ids}")
    complete = (
        any(one["offset"]["size"] == 0 for one in indexes)
        and any(one["transaction"] for one in indexes)
        and any(not one["transaction"] for one in indexes)
        and (form != "aiven-mixed" or (ids == {"", *KEYS} and len(compressions) == 2))
    )
    if not complete:
        sys.exit(f"{form}: not as promised")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="kafkajit-") as work:
        main(Path(sys.argv[1]).resolve(), Path(work))
