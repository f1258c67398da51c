"""All targets of tests/support/coverage_fuzz.py: by name, the check of an input and its seeds."""

from __future__ import annotations

import fuzz_log_targets
import fuzz_text_targets
import fuzz_value_targets
from fuzz_log_targets import Target

TARGETS: dict[str, Target] = {
    **fuzz_log_targets.TARGETS,
    **fuzz_value_targets.TARGETS,
    **fuzz_text_targets.TARGETS,
}
# Those whose inputs are JSON.
JSON_TARGETS = (
    *("manifest", "export-journal", "change-journal", "stream-offsets", "registry", "avro-schema"),
    *("json-schema", "json-value", "json-lines", "header-cell"),
)
