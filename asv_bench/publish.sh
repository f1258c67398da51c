#!/usr/bin/env bash
# Measures the releases that this machine has not measured yet, and writes asv's pages of all results
# into the built site, as build/docs/benchmarks.
#
#   asv_bench/publish.sh             reading and encoding, once each; about two minutes a release
#   asv_bench/publish.sh 'reader.*'  benchmarks whose names match an expression
set -euo pipefail
cd "$(dirname "$0")"

few='^(reader.(Records.time_iter|Projection|Throughput|Messages)|records.Batches|encode.EncodeBatches)'
tags=$(git tag --list 'v*' --sort=creatordate)
[ -n "$tags" ] || { echo "asv_bench/publish.sh: the checkout has no tags: git fetch --tags" >&2; exit 1; }

asv machine --yes >/dev/null
for tag in $tags; do
  printf '\n== %s\n' "$tag"
  # Exit code 2: a benchmark failed, as those do that this release does not support yet.
  asv run --quick --skip-existing-successful --bench "${1:-$few}" "$tag^!" || [ $? = 2 ]
done
asv publish --html-dir ../build/docs/benchmarks
