#!/bin/sh
# Runs coroner, ripgrep and Hyperscan, as far as they are there, over the same generated logs, alternating, and prints
# user+system seconds (medians of RUNS) and how often coroner's each of the others' are.
# usage: benches/side_by_side.sh [MEGABYTES]     environment: BIN, LITERALS (a file of search texts), RUNS, LOGS
set -eu
cd "$(dirname "$0")/.."
size=${1:-400}
runs=${RUNS:-5}
bin=${BIN:-target/release/coroner}
folder=${LOGS:-$(mktemp -d)}
[ -x "$bin" ] || cargo build --release
[ -e "$folder/S1-served.log" ] || cargo bench --bench throughput -- --write "$folder" "$size" >/dev/null
# The texts of the catalog's signatures, unless others are given.
literals=${LITERALS:-$folder/literals.txt}
[ -e "$literals" ] || python3 - >"$literals" <<'PY'
import glob, tomllib
texts = set()
for path in glob.glob("src/catalog/data/*.toml"):
    with open(path, "rb") as file:
        for signature in tomllib.load(file).get("signature", []):
            texts.update(text for text in signature["literal"] if "\n" not in text)
print("\n".join(sorted(texts)))
PY

# One thread, as ripgrep has with -j1.
export RAYON_NUM_THREADS=1

seconds() { # command... : user+system seconds of one run; PIPED names a file that another program pipes in
    python3 - "$@" <<'PY'
import os, subprocess, sys
piped = os.environ.get("PIPED")
source = subprocess.Popen(["cat", piped], stdout=subprocess.PIPE) if piped else None
with open(os.devnull, "w") as null:
    p = subprocess.Popen(sys.argv[1:], stdin=source and source.stdout, stdout=null, stderr=null)
    if source:
        source.stdout.close()
    _, _, used = os.wait4(p.pid, 0)
print(f"{used.ru_utime + used.ru_stime:.3f} {used.ru_maxrss // 1024}")
PY
}
middle() { sort -n | sed -n "$(((runs + 1) / 2))p"; }

echo "$(uname -sm), $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg), $("$bin" --version), $(rg --version 2>/dev/null | head -1)"
echo "$(wc -l <"$literals") literals, median of $runs, one thread"
# Columns: the log, its size, coroner's seconds and peak, its seconds from a pipe and these divided by the first, and of
# each peer its seconds and these divided by coroner's.
format='%-12s %6s %10s %8s %8s %6s %8s %6s %12s %6s\n'
# shellcheck disable=SC2059
printf "$format" shape MB 'coroner s' 'peak MB' 'piped s' ratio 'rg s' ratio 'hyperscan s' ratio
for log in "$folder"/S*.log; do
    rm -f "$folder/ours" "$folder/piped" "$folder/rg" "$folder/hyperscan"
    for _ in $(seq "$runs"); do
        seconds "$bin" "$log" >>"$folder/ours"
        PIPED=$log seconds "$bin" >>"$folder/piped"
        if command -v rg >/dev/null; then seconds rg -j1 -c -F -f "$literals" "$log" >>"$folder/rg"; fi
        python3 benches/block_scan.py "$literals" "$log" >>"$folder/hyperscan"
    done
    ours=$(cut -d' ' -f1 "$folder/ours" | middle)
    peak=$(cut -d' ' -f2 "$folder/ours" | middle)
    piped=$(cut -d' ' -f1 "$folder/piped" | middle)
    row="$(basename "$log" .log) $(($(wc -c <"$log") / 1000000)) $ours $peak"
    row="$row $piped $(echo "$ours $piped" | awk '{ printf "%.2f", $2 / $1 }')"
    for peer in rg hyperscan; do
        [ -s "$folder/$peer" ] || { row="$row - -" && continue; }
        theirs=$(cut -d' ' -f1 "$folder/$peer" | middle)
        row="$row $theirs $(echo "$ours $theirs" | awk '{ printf "%.2f", $2 / $1 }')"
    done
    # shellcheck disable=SC2086,SC2059
    printf "$format" $row
done

# How much faster a large file is examined on two threads, and how much two programs get done at once: what the machine
# gives at most.
wall() { # threads copies log : seconds until all copies have ended
    RAYON_NUM_THREADS=$1 python3 - "$2" "$bin" "$3" <<'PY'
import subprocess, sys, time
began = time.monotonic()
copies = [subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL) for _ in range(int(sys.argv[1]))]
for copy in copies:
    copy.wait()
print(f"{time.monotonic() - began:.3f}")
PY
}
log=$folder/S1-served.log
rm -f "$folder"/wall-*
for _ in $(seq "$runs"); do
    wall 1 1 "$log" >>"$folder/wall-one"
    wall 2 1 "$log" >>"$folder/wall-two"
    wall 1 2 "$log" >>"$folder/wall-both"
done
echo "$(middle <"$folder/wall-one") $(middle <"$folder/wall-two") $(middle <"$folder/wall-both")" | awk '{
    printf "S1 in wall time: %.3f s on one thread, %.3f s on two, %.2f times as fast; ", $1, $2, $1 / $2
    printf "two programs at once do %.2f times the work of one\n", 2 * $1 / $3
}'
