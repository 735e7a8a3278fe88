#!/usr/bin/env bash
# scripts/fuzz.sh BUILD SECONDS: a planted bug is found, then the readers are fed for so long, from what earlier runs reached on, which is
# kept in tests/fuzz/corpus.tar.gz (ctest feeds it too). Afterwards the corpus that this run would leave lies in BUILD/corpus.tar.gz.
set -euo pipefail
build=$1 seconds=$2
here=$(cd "$(dirname "$0")/.." && pwd)
corpus=$build/corpus
rm -rf "$corpus" "$build/merged"
mkdir -p "$corpus" "$build/merged"
tar xzf "$here/tests/fuzz/corpus.tar.gz" -C "$corpus"
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0:quarantine_size_mb=8 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
common=(-close_fd_mask=0 -rss_limit_mb=3000 -malloc_limit_mb=2500 -timeout=20 -max_len=4096 -print_final_stats=0)
rm -rf "$build/planted"  # with the input that found it last time
mkdir -p "$build/new" "$build/planted"
if "$build/tests/fuzz/fuzz_readers_planted" "${common[@]}" -max_total_time=120 -artifact_prefix="$build/planted/" \
  "$build/planted" "$build/seeds" > "$build/planted.log" 2>&1; then
  echo "the planted bug was not found in 120 s"; exit 1
fi
grep -qE "index 8 out of bounds|global-buffer-overflow" "$build/planted.log" || { tail -30 "$build/planted.log"; exit 1; }
echo "the planted bug was found"
if ! "$build/tests/fuzz/fuzz_readers" "${common[@]}" -max_total_time="$seconds" -artifact_prefix="$build/found-" \
  "$build/new" "$build/seeds" "$corpus" > "$build/fuzz.log" 2>&1; then
  tail -60 "$build/fuzz.log"; echo "an input that breaks a reader: $build/found-*; add it to tests/fuzz/corpus.tar.gz when it is mended"; exit 1
fi
grep -E "^Done|^#[0-9]+\s+DONE" "$build/fuzz.log"
"$build/tests/fuzz/fuzz_readers" "${common[@]}" -merge=1 "$build/merged" "$corpus" "$build/new" "$build/seeds" > "$build/merge.log" 2>&1
tar czf "$build/corpus.tar.gz" -C "$build/merged" .
echo "$(ls "$build/merged" | wc -l) inputs in $build/corpus.tar.gz"
