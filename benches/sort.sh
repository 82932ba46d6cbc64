#!/bin/sh
# Times `regrow run sort` against another sort of the same records, in alternation, and prints the
# ratio of the medians, and how long each stage of the last run took.
#
#   benches/sort.sh [SIZE [ROUNDS [DIRECTORY]]]     1gb, 3, a new one under $TMPDIR
#
# REGROW  the program (target/release/regrow)
# PEER    what to compare with: a command that is called with the directory of the input, that of the
#         output, and a number of files to make (GNU sort with as many threads as there are slots)
# SLOTS   tasks at once (2)
#
# Regrow syncs each file of its output before it publishes it. What a sort does that leaves its output
# in the cache of the system is not the same; so the time of a sync of its output is told as well.
set -eu

size=${1:-1gb} rounds=${2:-3}
regrow=${REGROW:-target/release/regrow} slots=${SLOTS:-2}
directory=$(mktemp -d "${3:-${TMPDIR:-/tmp}}/sort-XXXXXX")
trap 'rm -rf "$directory"' EXIT
trap 'exit 130' INT TERM

gnu_sort() {
    mkdir -p "$2"
    LC_ALL=C sort --parallel="$slots" -S 256M -T "$2" -o "$2/part-00000" "$1"/*
}
now() { date +%s%N; }
seconds() { awk -v ns="$1" 'BEGIN { printf "%.2f", ns / 1e9 }'; }
median() { sort -n "$1" | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'; }

"$regrow" generate records --size "$size" --files 16 --output "$directory/in"
"$regrow" verify checksum "$directory/in"
echo "round  regrow  peer  peer+sync"
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    rm -rf "$directory/out" "$directory/peer" "$directory/ledger"
    sync
    before=$(now)
    "$regrow" run sort --input "$directory/in" --output "$directory/out" --slots "$slots" --quiet \
        --data-dir "$directory/data" --ledger "$directory/ledger" 2> "$directory/said" ||
        { cat "$directory/said"; exit 1; }
    ours=$(($(now) - before))
    sync
    before=$(now)
    ${PEER:-gnu_sort} "$directory/in" "$directory/peer" 64 > /dev/null
    peer=$(($(now) - before))
    sync "$directory"/peer/*
    synced=$(($(now) - before))
    echo "$ours" >> "$directory/ours"
    echo "$peer" >> "$directory/peers"
    echo "$synced" >> "$directory/synced"
    echo "$round      $(seconds "$ours")    $(seconds "$peer")  $(seconds "$synced")"
done
"$regrow" verify sorted "$directory/out"
ours=$(median "$directory/ours") peer=$(median "$directory/peers")
synced=$(median "$directory/synced")
awk -v a="$ours" -v b="$peer" -v c="$synced" \
    'BEGIN { printf "ratio %.2f; to the peer with a sync %.2f\n", a / b, a / c }'
# Stages are 0 sample, 1 decide, 2 divide, 3 sort. Busy is the time of all tasks together.
awk '$4 ~ /^[0-9]+$/ {
    key = $3 " " $4 " " $5
    if ($6 == "start") { begun[key] = $1; if (!($3 in first) || $1 < first[$3]) first[$3] = $1 }
    if ($6 == "end") { busy[$3] += $1 - begun[key]; tasks[$3]++; last[$3] = $1 }
} END {
    for (stage = 0; stage in tasks; stage++)
        printf "stage %d: %d tasks, %d ms, busy %d ms\n", stage, tasks[stage],
            last[stage] - first[stage], busy[stage]
}' "$directory/ledger"
