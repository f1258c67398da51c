from __future__ import annotations

import os
import re
import zipfile

from kafkajit.spark.local import java, jvm


def test_the_jvm_opens_what_sparks_own_launcher_opens() -> None:
    (jar,) = (path for path in java.spark_jars() if path.name.startswith("spark-launcher"))
    with zipfile.ZipFile(jar) as content:
        options = content.read("org/apache/spark/launcher/JavaModuleOptions.class")
    opened = re.findall(rb"--add-opens=([\w./]+)=ALL-UNNAMED", options)
    ours = {f"java.base/{package}" for package in jvm.OPENED}
    assert {name.decode() for name in opened} == ours | {"java.security.jgss/sun.security.krb5"}


def test_the_heap_is_half_of_the_memory_and_never_too_large_for_an_archive() -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 2**30 <= jvm._heap() <= max(min(memory // 2, 31 * 2**30), 2**30)
