from __future__ import annotations

import pytest
from needs import need


def test_a_test_whose_program_is_missing_is_skipped_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("KAFKAJIT_REQUIRE", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs `mvn`: install Apache Maven"):
        need("mvn")


def test_ci_fails_without_a_program_that_a_test_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("KAFKAJIT_REQUIRE", "java mvn")
    with pytest.raises(pytest.fail.Exception, match="needs `java`: install Java 17 or newer"):
        need("java")
    with pytest.raises(pytest.skip.Exception, match="needs `chromium`"):
        need("chromium")
