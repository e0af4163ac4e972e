#!/bin/sh
# Records `quorlock run` losing its lock behind a cut network, as a picture that plays. Nothing in it is made up: five
# masters of this machine, a proxy in front of each, and two runs that want the same lock.
#   sh docker/recording.sh > docker/run.svg
# BIN names a folder with `quorlock` and `examples/bedtool`; without it they are built.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${BIN:-}" ]; then
    (cd "$root" && cargo build -q --release --features cli --bin quorlock --example bedtool)
    BIN=${CARGO_TARGET_DIR:-$root/target}/release
fi
quorlock=$BIN/quorlock
bedtool=$BIN/examples/bedtool

folder=$(mktemp -d)
export XDG_RUNTIME_DIR="$folder"
proxies=
end() {
    [ -z "$proxies" ] || kill "$proxies" 2> /dev/null || true
    "$quorlock" testbed down > /dev/null 2>&1 || true
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT TERM

eval "$("$quorlock" -q testbed up)"
direct=$QUORLOCK_MASTERS

# Each master on its own port of another loopback address, through a proxy.
control=127.0.1.2:${direct##*:}
ways='' through='' nth=0
for url in $(printf '%s' "$direct" | tr ',' ' '); do
    nth=$((nth + 1))
    address=${url#redis://}
    ways="$ways m$nth=127.0.1.1:${address##*:}=$address"
    through="$through${through:+,}redis://127.0.1.1:${address##*:}"
done
# shellcheck disable=SC2086
"$bedtool" proxy "$control" $ways &
proxies=$!

cat > "$folder/report.sh" <<'REPORT'
trap 'echo "report: TERM? Not before the last page"' TERM
page=0
while :; do
    page=$((page + 1))
    echo "report: page $page"
    (trap '' TERM; sleep 1)
done
REPORT

tape=$folder/tape
: > "$tape"
began=$(date +%s%N)
# Lines of KIND, with the moment at which they came.
record() {
    while IFS= read -r line; do
        printf '%s\t%s\t%s\n' "$(( ($(date +%s%N) - began) / 1000000 ))" "$1" "$line" >> "$tape"
    done
}
said() { printf '%s\n' "$2" | record "$1"; }

said prompt 'web-1 $ quorlock run report --ttl 10s --kill-grace 3s -- sh report.sh'
set +e
(
    cd "$folder" || exit
    QUORLOCK_MASTERS=$through "$quorlock" run report --ttl 10s --kill-grace 3s -- sh report.sh 2>&1
    echo "exit code $?"
) | grep --line-buffered -v ' WARN ' | record one &
one=$!
sleep 2
said prompt 'web-2 $ quorlock run report --wait 1m -v -- echo "report: page 1"'
(
    QUORLOCK_MASTERS=$direct "$quorlock" run report --wait 1m -v -- echo "report: page 1" 2>&1
    echo "exit code $?"
) | grep --line-buffered -v ' INFO ' | record two &
two=$!
sleep 2
said cut 'the network between web-1 and all five masters is cut'
for nth in 1 2 3 4 5; do "$bedtool" tell "$control" "m$nth" cut > /dev/null; done
wait "$one" "$two"
set -e

# A line each, from top to bottom, that shows at its moment; all of them where nothing plays.
awk -F '\t' '
function escaped(text) {
    gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text)
    return text
}
{
    time[NR] = $1 / 1000; kind[NR] = $2; text[NR] = $3
}
END {
    height = NR * 20 + 56
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 980 %d\" font-family=\"ui-monospace, monospace\" font-size=\"13\" role=\"img\"\n", height
    print " aria-label=\"A recording: quorlock run is cut off from its masters, ends its command by TERM and then KILL, and exits with 76; only then the other machine gets the lock\">"
    print "<style>"
    print " .paper { fill: #14181f } text { fill: #d7dde6; white-space: pre } .time { fill: #6b7686 } .prompt { fill: #ffffff; font-weight: 600 }"
    print " .cut { fill: #ff8f86 } .word { fill: #f3c969 } .two { fill: #8fd3a5 }"
    print " @keyframes show { from { opacity: 0 } } g { animation: show 50ms both }"
    print " @media (prefers-reduced-motion: reduce) { g { animation: none } }"
    print "</style>"
    printf "<rect width=\"980\" height=\"%d\" rx=\"8\" class=\"paper\"/>\n", height
    for (nth = 1; nth <= NR; nth++) {
        class = kind[nth]; shown = text[nth]
        if (class == "one") class = (shown ~ /^report:/) ? "job" : "word"
        if (kind[nth] == "one" || kind[nth] == "two") shown = (kind[nth] == "one" ? "web-1   " : "web-2   ") shown
        if (class == "cut") shown = "        ──── " shown " ────"
        printf "<g style=\"animation-delay:%.2fs\"><text x=\"20\" y=\"%d\" class=\"time\">%6.2f s</text>", time[nth], nth * 20 + 24, time[nth]
        printf "<text x=\"100\" y=\"%d\" class=\"%s\">%s</text></g>\n", nth * 20 + 24, class, escaped(shown)
    }
    print "</svg>"
}' "$tape"
