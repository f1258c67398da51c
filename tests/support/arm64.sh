#!/usr/bin/env bash
# Makes a Python for 64-bit ARM that runs on this machine, by qemu, and runs tests in it:
#
#   tests/support/arm64.sh build/arm64 -m pytest -n 0 tests/format
#
# Needs Debian's qemu-user-static and apt-get, but no rights of root: Debian's packages for arm64 and
# PyPI's wheels are unpacked into the folder. What a test starts as sys.executable runs there too.
# Compiling takes about fifteen times as long as on the machine itself.
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(realpath -m "$1")
shift

if [ ! -e "$folder/ready" ]; then
  mkdir -p "$folder/root" "$folder/apt/lists/partial" "$folder/apt/archives/partial"
  : >"$folder/apt/status"
  apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64
    -o Dir::State::lists="$folder/apt/lists" -o Dir::State::status="$folder/apt/status"
    -o Dir::Cache="$folder/apt" -o Debug::NoLocking=1 -o APT::Install-Recommends=0)
  "${apt[@]}" update
  "${apt[@]}" -y --download-only install python3 libstdc++6
  for package in "$folder"/apt/archives/*.deb; do dpkg-deb -x "$package" "$folder/root"; done
  rm -rf "$folder/apt"

  # qemu-user looks for absolute paths in the root first. It is named whole: tests empty PATH.
  cat >"$folder/python" <<END
#!/bin/sh
PYTHONPATH="$checkout:$folder/wheels\${PYTHONPATH:+:\$PYTHONPATH}"
NUMBA_CPU_FEATURES="\${NUMBA_CPU_FEATURES-+neon,+crc,+aes}"
export PYTHONPATH NUMBA_CPU_FEATURES PYTHONDONTWRITEBYTECODE=1
exec $(command -v qemu-aarch64-static) -cpu neoverse-n1 -L "$folder/root" "$folder/root/usr/bin/python3" "\$@"
END
  chmod +x "$folder/python"

  # A Python of the same version as the root's must choose the wheels.
  version=$("$folder/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  python3 - "$checkout/pyproject.toml" >"$folder/requirements.txt" <<'END'
import sys
import tomllib
with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"]
# What is for Spark, for lint or for a browser is left out.
left_out = ("kafkajit", "pyspark", "asv", "mypy", "ruff", "selenium", "venv-pack", "virtualenv")
wanted = project["dependencies"] + ["pandas<3"]  # as it comes with pyspark
for extra in ("encryption", "report", "test", "dev"):
    wanted += extras[extra]
print("\n".join(line for line in wanted if not line.startswith(left_out)))
END
  platforms=()
  for glibc in 2_17 2_24 2_26 2_27 2_28 2_31 2_34; do
    platforms+=(--platform "manylinux_${glibc}_aarch64")
  done
  python3 -m pip install -q --target "$folder/wheels" --only-binary=:all: \
    --platform manylinux2014_aarch64 "${platforms[@]}" --python-version "$version" \
    -r "$folder/requirements.txt"
  # Tests start other processes as sys.executable: let these go through qemu, too.
  echo "import sys; sys.executable = '$folder/python'" >"$folder/wheels/sitecustomize.py"
  touch "$folder/ready"
fi

cd "$checkout"
exec "$folder/python" "$@"
