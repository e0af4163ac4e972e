#!/bin/sh
# Faults on the containers of the test bed, by the words that `quorlock testbed fault` has for local processes.
#   sh docker/faults.sh MASTER FAULT                 in force until Ctrl-C (or TERM, HUP), then undone
#   sh docker/faults.sh MASTER FAULT --for SECONDS   in force that long, then undone
#   sh docker/faults.sh MASTER FAULT -- COMMAND...   in force while the command runs, then undone
#   sh docker/faults.sh MASTER FAULT --keep          in force from now on
#   sh docker/faults.sh MASTER FAULT --undo          taken away again
#   sh docker/faults.sh status                       how all masters are
# MASTER: m1 to m5. FAULT, in a container:
#   kill restart-empty restart-with-data restart-old-snapshot snapshot freeze thaw cut join
#   flush pause-writes[=MS] out-of-memory clock-step=MS clock-slew=PPM promote-replica
# and on the way to it, where the bed has proxies: slow[=MS] lose-replies lose-requests blackhole reset refuse
# Prints `MASTER: FAULT: ` and `installed`, `skipped: WHY` or `indeterminate: WHY`. Status 0 if installed, else 1.
# $QUORLOCK_PROJECT names the bed (quorlock, unless it was brought up under another name).
set -eu

project=${QUORLOCK_PROJECT:-quorlock}
network=$project-lock
control=127.0.0.1:7000

usage() {
    cat >&2 <<'USAGE'
usage: faults.sh MASTER FAULT [--for SECONDS | --keep | --undo | -- COMMAND...]
       faults.sh status
MASTER: m1 to m5. FAULT: kill, restart-empty, restart-with-data, restart-old-snapshot, snapshot, freeze, thaw, cut, join,
  slow[=MS], lose-replies, lose-requests, blackhole, reset, refuse, clock-step=MS, clock-slew=PPM, flush,
  pause-writes[=MS], out-of-memory, promote-replica
$QUORLOCK_PROJECT names the bed.
USAGE
    exit 2
}

# --- what became of it: one line, the last thing that an act prints

installed() { echo installed; }
skipped() { echo "skipped: $*"; }
indeterminate() { echo "indeterminate: $*"; }

# --- looking

field() { docker inspect -f "$1" "$project-$2" 2>/dev/null; }

# up, frozen, cut, down or absent.
condition() { # CONTAINER
    state=$(field '{{.State.Status}} {{len .NetworkSettings.Networks}}' "$1") || { echo absent; return; }
    case $state in
        running\ 0) echo cut ;;
        running\ *) echo up ;;
        paused\ *) echo frozen ;;
        *) echo down ;;
    esac
}

client() { # CONTAINER WORD...
    container=$project-$1
    shift
    docker exec "$container" redis-cli "$@" 2>&1 </dev/null
}

# Until it is true, for at most ten seconds.
until_true() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        if "$@"; then return 0; fi
        sleep 0.5 2>/dev/null || sleep 1
    done
    return 1
}

answers() { [ "$(client "$1" ping)" = PONG ]; }
is_down() { [ "$(condition "$1")" = down ]; }

# --- doing

stop() { # CONTAINER
    is_down "$1" || docker kill "$project-$1" >/dev/null 2>&1 || true
    until_true is_down "$1"
}

start() { # CONTAINER
    docker start "$project-$1" >/dev/null && until_true answers "$1"
}

# Puts files into a volume of a container that may be down and whose own files may not be changed.
put() { # CONTAINER DIRECTORY FILE...
    into=$project-$1:$2
    shift 2
    (cd "$work" && tar -cf - "$@") | docker cp - "$into" >/dev/null
}

ask() { # CONTAINER WORD...
    case $(condition "$1") in
        up | cut) ;;
        *) skipped "it is $(condition "$1")"; return ;;
    esac
    answer=$(client "$@") || { indeterminate "$answer"; return; }
    case $answer in
        OK) installed ;;
        *) skipped "$answer" ;;
    esac
}

restarted() { # CONTAINER
    if start "$1"; then installed; else indeterminate 'it does not answer after its start'; fi
}

# Where what must outlive this command lies: this user's own, or nobody's.
state() {
    folder=${QUORLOCK_STATE:-${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}/quorlock-faults-$(id -u)-$project}
    mkdir -m 700 "$folder" 2>/dev/null || true
    [ -n "$(find "$folder" -prune -type d -user "$(id -un)" 2>/dev/null)" ] || { echo "$folder is not ours" >&2; return 1; }
    echo "$folder"
}

# A log of commands without commands, as Redis 7 and Valkey keep it, and as Redis 6 does.
restart_empty() {
    mkdir "$work/appendonlydir"
    echo 'file appendonly.aof.9999.incr.aof seq 9999 type i' >"$work/appendonlydir/appendonly.aof.manifest"
    : >"$work/appendonlydir/appendonly.aof.9999.incr.aof"
    : >"$work/appendonly.aof"
    chmod -R a+rwX "$work/appendonlydir" "$work/appendonly.aof"
    stop "$1" || { indeterminate 'it does not end'; return; }
    put "$1" /data appendonlydir appendonly.aof || { indeterminate 'its data could not be replaced'; return; }
    restarted "$1"
}

snapshot() {
    case $(condition "$1") in up | cut) ;; *) skipped "it is $(condition "$1")"; return ;; esac
    kept=$(state)/$1.tar
    if docker cp "$project-$1:/data/." - >"$kept.next" && mv "$kept.next" "$kept"; then installed
    else skipped 'its data could not be read'; fi
}

restart_old() {
    kept=$(state)/$1.tar
    [ -f "$kept" ] || { skipped 'it has no snapshot: say snapshot before'; return; }
    stop "$1" || { indeterminate 'it does not end'; return; }
    docker cp - "$project-$1:/data" <"$kept" >/dev/null || { indeterminate 'its data could not be replaced'; return; }
    restarted "$1"
}

on_the_way() { # MASTER WORDS
    [ "$(condition proxy)" = up ] || { skipped 'no proxy stands before the masters: docker/run.sh brings them up, too, or the profile proxy'; return; }
    docker exec "$project-proxy" bedtool tell "$control" "$*" 2>&1 </dev/null || indeterminate 'the proxy does not listen'
}

clock() { # CONTAINER LINE
    case $(field '{{range .Config.Env}}{{println .}}{{end}}' "$1") in
        *LD_PRELOAD=/*) ;;
        *) skipped 'its clock cannot be turned: the bed was brought up without clocks, which take a C compiler'; return ;;
    esac
    echo "$2" >"$work/$1"
    chmod 644 "$work/$1"
    if put "$1" /clock "$1"; then installed; else indeterminate 'its clock could not be written'; fi
}

replica=r1
connect() { # CONTAINER ADDRESS ALIAS
    docker network disconnect "$network" "$project-$1" >/dev/null 2>&1 || true
    docker network connect --ip "$2" --alias "$3" "$network" "$project-$1" >/dev/null
}
address() { field '{{index .Config.Labels "quorlock.address"}}' "$1"; }

# Its replica takes its place, its address included, as a failover by a sentinel and a moving address does.
promote() {
    [ "$1" = m1 ] || { skipped 'only m1 has a replica'; return; }
    # Also where it is cut off and behind: that is when failovers happen.
    case $(condition $replica) in
        up | cut) ;;
        *) skipped 'no replica is up: docker/run.sh shell brings one up, too, or the profile failover'; return ;;
    esac
    stop "$1" || { indeterminate 'the master does not end'; return; }
    answer=$(client $replica replicaof no one)
    [ "$answer" = OK ] || { indeterminate "$answer"; return; }
    # A container that is down keeps no address. Disconnected it cannot come back to it by a mere start.
    docker network disconnect -f "$network" "$project-$1" >/dev/null 2>&1 || true
    if connect $replica "$(address "$1")" "$1"; then installed; else indeterminate 'the replica could not take the address'; fi
}

demote() {
    if [ "$1" != m1 ] || [ "$(condition $replica)" = absent ]; then skipped 'it has no replica'; return; fi
    connect $replica "$(address $replica)" $replica || { indeterminate 'the replica could not give the address back'; return; }
    join "$1" >/dev/null
    start "$1" || { indeterminate 'it does not answer after its start'; return; }
    ask $replica replicaof "$1" 6379
}

join() {
    if connect "$1" "$(address "$1")" "$1"; then installed; else indeterminate 'the network could not be joined'; fi
}

# A command, with its output as the reason if it fails.
try() {
    if failure=$("$@" 2>&1 >/dev/null); then installed; else indeterminate "$failure"; fi
}

inject() { # MASTER FAULT
    now=$(condition "$1")
    [ "$now" != absent ] || { skipped "there is no container $project-$1"; return; }
    case $2 in
        kill)
            if [ "$now" = down ]; then skipped 'already down'
            elif stop "$1"; then installed
            else indeterminate 'it does not end'; fi ;;
        restart-empty) restart_empty "$1" ;;
        restart-with-data)
            if stop "$1"; then restarted "$1"; else indeterminate 'it does not end'; fi ;;
        restart-old-snapshot) restart_old "$1" ;;
        snapshot) snapshot "$1" ;;
        freeze)
            case $now in
                up | cut) try docker pause "$project-$1" ;;
                *) skipped "already $now" ;;
            esac ;;
        thaw)
            if [ "$now" = frozen ]; then try docker unpause "$project-$1"; else skipped 'not frozen'; fi ;;
        cut)
            if [ "$now" = cut ]; then skipped 'already cut'; else try docker network disconnect "$network" "$project-$1"; fi ;;
        join)
            if [ "$(field '{{len .NetworkSettings.Networks}}' "$1")" = 0 ]; then join "$1"; else skipped 'not cut'; fi ;;
        flush) ask "$1" flushall ;;
        pause-writes) ask "$1" client pause 10000 write ;;
        pause-writes=*) ask "$1" client pause "${2#*=}" write ;;
        out-of-memory) ask "$1" config set maxmemory 1 ;;
        clock-step=*) clock "$1" "$(number "${2#*=}")000 0 0" ;;
        clock-slew=*) clock "$1" "0 $(number "${2#*=}") $(date +%s)000000" ;;
        promote-replica) promote "$1" ;;
        slow | slow=* | lose-replies | lose-requests | blackhole | reset | refuse) on_the_way "$1" "$2" ;;
    esac
}

# Without the plus that a number may have.
number() {
    sign=
    case $1 in -*) sign=- ;; esac
    digits=${1#[-+]}
    echo "$sign$digits"
}

undo() { # MASTER FAULT
    now=$(condition "$1")
    case $2 in
        kill)
            if [ "$now" = down ]; then restarted "$1"; else skipped 'not down'; fi ;;
        freeze) inject "$1" thaw ;;
        cut) inject "$1" join ;;
        pause-writes | pause-writes=*) ask "$1" client unpause ;;
        out-of-memory)
            limit=$(field '{{range .Config.Cmd}}{{println .}}{{end}}' "$1" | sed -n '/^--maxmemory$/{n;p;}')
            ask "$1" config set maxmemory "${limit:-0}" ;;
        clock-*) clock "$1" '0 0 0' ;;
        promote-replica) demote "$1" ;;
        slow | slow=* | lose-replies | lose-requests | blackhole | refuse) on_the_way "$1" "undo $2" ;;
        flush) skipped 'what was flushed is gone' ;;
        *) skipped 'nothing to undo' ;;
    esac
}

status() {
    ways=$(docker exec "$project-proxy" bedtool tell "$control" status 2>/dev/null </dev/null || true)
    printf '%-4s %-7s %-8s %6s %8s  %-9s %s\n' name state role keys 'up, s' run 'on the way: fault, connections, bytes to, bytes from'
    for name in m1 m2 m3 m4 m5 r1; do
        now=$(condition "$name")
        if [ "$name" = r1 ] && [ "$now" = absent ]; then continue; fi
        role=- keys=- age=- run=-
        case $now in up | cut)
            info=$(client "$name" info | tr -d '\r')
            of() { echo "$info" | sed -n "s/^$1://p"; }
            role=$(of role) age=$(of uptime_in_seconds) run=$(of run_id | cut -c1-8)
            keys=$(client "$name" dbsize | sed 's/[^0-9]//g') ;;
        esac
        printf '%-4s %-7s %-8s %6s %8s  %-9s %s\n' "$name" "$now" "${role:--}" "${keys:--}" "${age:--}" "${run:--}" \
            "$(echo "$ways" | sed -n "s/^$name //p")"
    done
}

is_word() {
    case $1 in
        kill | restart-empty | restart-with-data | restart-old-snapshot | snapshot | freeze | thaw | cut | join) ;;
        slow | lose-replies | lose-requests | blackhole | reset | refuse) ;;
        flush | pause-writes | out-of-memory | promote-replica) ;;
        slow=* | pause-writes=*) case ${1#*=} in '' | *[!0-9]*) return 1 ;; esac ;;
        clock-step=* | clock-slew=*)
            digits=${1#*=}
            case ${digits#[-+]} in '' | *[!0-9]*) return 1 ;; esac ;;
        *) return 1 ;;
    esac
}

[ $# -gt 0 ] || usage
command -v docker >/dev/null || { echo 'faults.sh: no docker in PATH' >&2; exit 2; }
if [ "$1" = status ]; then
    status
    exit
fi
[ $# -ge 2 ] || usage
master=$1 fault=$2
shift 2
case $master in [1-9]) master=m$master ;; m[1-9]) ;; *) usage ;; esac
is_word "$fault" || usage
how=until-ended seconds=0
case ${1:-} in
    '') ;;
    --keep) how=keep; shift ;;
    --undo) how=undo; shift ;;
    --for)
        how=for seconds=${2:-}
        case $seconds in '' | *[!0-9]*) usage ;; esac
        shift 2 ;;
    --)
        how='command'
        shift
        [ $# -gt 0 ] || usage ;;
    *) usage ;;
esac
[ "$how" = command ] || [ $# -eq 0 ] || usage

work=$(mktemp -d)
in_force='' sleeper=''
away() {
    status=$?
    trap '' HUP INT TERM
    [ -z "$sleeper" ] || kill "$sleeper" 2>/dev/null || true
    if [ -n "$in_force" ]; then
        in_force=
        echo "$master: undo $fault: $(undo "$master" "$fault")"
    fi
    rm -rf "$work"
    exit $status
}
trap away EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

if [ $how = undo ]; then
    outcome=$(undo "$master" "$fault")
    echo "$master: undo $fault: $outcome"
    [ "$outcome" = installed ]
    exit
fi
# Before it is known to be in place, so that nothing stays where this command is ended half-way.
[ $how = keep ] || in_force=yes
outcome=$(inject "$master" "$fault")
case $outcome in skipped*) in_force= ;; esac
echo "$master: $fault: $outcome"
[ "$outcome" = installed ]
case $how in
    until-ended)
        while :; do
            sleep 3600 &
            sleeper=$!
            wait "$sleeper" || true
        done ;;
    for)
        sleep "$seconds" &
        sleeper=$!
        wait "$sleeper" || true ;;
    command) "$@" ;;
esac
