#!/bin/sh
# Draws the test bed, from what docker/compose.yaml says of it.
#   sh docker/picture.sh > docker/testbed.svg
set -eu

compose=$(dirname "$0")/compose.yaml

# The default that a variable has there, and the address of a service.
default() { sed -n "s/.*\${$1:-\([^}]*\)}.*/\1/p" "$compose" | head -n 1; }
address() {
    sed -n "/^  $1:\$/,/^  [a-z]/s/.*ipv4_address: \"\${QUORLOCK_NET:-\([^}]*\)}\(\.[0-9]*\)\".*/\1\2/p" "$compose"
}

box() { # X Y WIDTH HEIGHT CLASS
    echo "<rect x=\"$1\" y=\"$2\" width=\"$3\" height=\"$4\" rx=\"6\" class=\"$5\"/>"
}
text() { # X Y CLASS WORDS
    echo "<text x=\"$1\" y=\"$2\" class=\"$3\">$4</text>"
}
arrow() { # X Y X Y CLASS
    echo "<line x1=\"$1\" y1=\"$2\" x2=\"$3\" y2=\"$4\" class=\"$5\" marker-end=\"url(#head)\"/>"
}

cat <<'HEAD'
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 560" font-family="system-ui, sans-serif" font-size="14" role="img"
 aria-label="Clients on this machine reach five masters in containers, each through a proxy of its own; faults can be put on each proxy and on each master">
<style>
 .paper { fill: #ffffff } .net { fill: #f3f6fa; stroke: #7d8ca3; stroke-dasharray: 6 4 }
 .client { fill: #fff4d6; stroke: #b98900 } .way { fill: #e6f0ff; stroke: #3566b0 } .master { fill: #e4f6e8; stroke: #2e7d46 }
 .replica { fill: #f4e9f7; stroke: #7b4590 } .line { stroke: #566273; stroke-width: 1.5 } .repl { stroke: #7b4590; stroke-width: 1.5; stroke-dasharray: 4 3 }
 text { fill: #1c2430 } .b { font-weight: 600 } .m { font-family: ui-monospace, monospace; font-size: 12px } .s { font-size: 12px; fill: #4a5565 }
 .f { font-family: ui-monospace, monospace; font-size: 12px; fill: #a3241b }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#566273"/></marker></defs>
HEAD
box 0 0 980 560 paper
box 255 20 705 400 net
text 270 42 s "the bed&#8217;s own network, $(default QUORLOCK_NET).0/24; ports on 127.0.0.1 only"

box 20 150 190 140 client
text 35 178 b 'clients'
text 35 202 m 'quorlock demo, run, &#8230;'
text 35 222 m 'the tests, the benches'
text 35 242 m 'your own program'
text 35 270 s 'a claim goes to all five'

nth=1
while [ $nth -le 5 ]; do
    y=$((60 + (nth - 1) * 70))
    middle=$((y + 25))
    arrow 210 $((180 + nth * 12)) 285 $middle line
    box 290 $y 150 50 way
    text 302 $((y + 21)) b "way to m$nth"
    text 302 $((y + 40)) m "127.0.0.1:$(default QUORLOCK_PROXY$nth)"
    arrow 440 $middle 555 $middle line
    box 560 $y 200 50 master
    text 572 $((y + 21)) b "m$nth"
    text 600 $((y + 21)) m "$(address m$nth)"
    text 572 $((y + 40)) m "127.0.0.1:$(default QUORLOCK_PORT$nth)"
    nth=$((nth + 1))
done
arrow 760 85 815 85 repl
box 820 60 120 50 replica
text 832 81 b 'r1'
text 832 100 m "$(address r1)"
text 818 128 s 'a replica of m1,'
text 818 144 s 'always a little late'
text 818 182 s 't1 to t5, not shown:'
text 818 198 s 'five more masters,'
text 818 214 s 'with TLS and an ACL'

text 20 450 b 'Faults'
text 270 450 b 'on the way'
text 270 472 f 'slow=MS&#160;&#160; reset&#160;&#160; refuse'
text 270 492 f 'lose-replies&#160;&#160; lose-requests'
text 270 512 f 'blackhole'
text 560 450 b 'at a master'
text 560 472 f 'kill&#160;&#160; freeze&#160;&#160; thaw&#160;&#160; cut&#160;&#160; join&#160;&#160; snapshot'
text 560 492 f 'restart-empty&#160;&#160; restart-with-data&#160;&#160; restart-old-snapshot'
text 560 512 f 'clock-step=MS&#160;&#160; clock-slew=PPM&#160;&#160; out-of-memory'
text 560 532 f 'pause-writes=MS&#160;&#160; flush&#160;&#160; promote-replica'
text 20 472 s 'sh docker/faults.sh m2 freeze'
text 20 492 s 'sh docker/faults.sh status'
echo '</svg>'
