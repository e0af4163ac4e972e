# shellcheck shell=sh disable=SC2154,SC2034 # variables of run.sh
# Five masters as containers: read by run.sh, whose $command, $work, say and die it uses.

engine_answers() { command -v docker >/dev/null && docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

compose() {
    if docker compose version >/dev/null 2>&1; then docker compose -p "$QUORLOCK_PROJECT" -f docker/compose.yaml "$@"
    else docker-compose -p "$QUORLOCK_PROJECT" -f docker/compose.yaml "$@"; fi
}

has_compose() { docker compose version >/dev/null 2>&1 || docker-compose version >/dev/null 2>&1; }

# The first of sixteen ports in a row that nobody listens on. Below those that the kernel gives to outgoing connections.
choose_ports() {
    first=$((20000 + $$ % 700 * 16))
    while :; do
        taken=no
        for port in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
            if [ -r /proc/net/tcp ] && awk '{ print $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null |
                grep -q ":$(printf '%04X' $((first + port)))\$"; then taken=yes; fi
        done
        [ $taken = yes ] || break
        first=$((first + 16))
        [ $first -lt 32000 ] || first=20000
    done
    for nth in 1 2 3 4 5; do
        export "QUORLOCK_PORT$nth=$((first + nth))" "QUORLOCK_PROXY$nth=$((first + 5 + nth))" "QUORLOCK_TLS$nth=$((first + 10 + nth))"
    done
}

# Addresses that no network of this engine has. The engine is asked by trying: what it creates it also checks.
choose_net() {
    for try in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        QUORLOCK_NET=10.89.$((1 + ($$ + try * 13) % 250))
        if docker network create --subnet "$QUORLOCK_NET.0/24" "$QUORLOCK_PROJECT-probe" >/dev/null 2>&1; then
            docker network rm "$QUORLOCK_PROJECT-probe" >/dev/null
            export QUORLOCK_NET
            return
        fi
    done
    die 'no free network address from 10.89.1.0/24 on'
}

# The containers of this run, as far as they are there.
ours() { docker ps -aq --filter "label=com.docker.compose.project=$QUORLOCK_PROJECT"; }

# Masters can only be given a clock of their own before they start; without a C compiler they do without.
prepare_clocks() {
    QUORLOCK_PRELOAD=
    mkdir "$work/clock"
    if cc -shared -fPIC -O2 -nostdlib -fno-builtin -fno-stack-protector -o "$work/clock/skew.so" docker/skew.c 2>"$work/cc"; then
        QUORLOCK_PRELOAD=/clock/skew.so
        for name in m1 m2 m3 m4 m5 r1; do echo '0 0 0' >"$work/clock/$name"; done
        chmod -R a+rX "$work/clock"
    else
        say 'no C compiler that makes docker/skew.c work: faults on clocks will be skipped'
    fi
    export QUORLOCK_PRELOAD
}

are_healthy() {
    # shellcheck disable=SC2046 # identifiers, one a word
    ! docker inspect -f '{{.State.Health.Status}}' $(ours) | grep -qv '^healthy$'
}

# Sets $BIN, $QUORLOCK_MASTERS and what docker/compose.yaml asks for.
containers_up() { # PROFILES
    QUORLOCK_PROJECT=${QUORLOCK_PROJECT:-quorlock-run-$$}
    export QUORLOCK_PROJECT QUORLOCK_CONTAINERS="$QUORLOCK_PROJECT" COMPOSE_PROFILES="$1" QUORLOCK_TLS="$work/tls" QUORLOCK_STATE="$work/faults"
    [ -z "$(ours)" ] || die "containers of a project $QUORLOCK_PROJECT are there already; not touched"
    engine=$(docker version --format '{{.Server.Version}}')
    say "Docker engine $engine, project $QUORLOCK_PROJECT"
    case $command in
        # What the tests have built anyway.
        test) profile=debug; set -- cargo build -q --all-features ;;
        *) profile=release; set -- cargo build -q --release --features cli,tls ;;
    esac
    # Each step says what becomes of its failure: run.sh calls this where `set -e` does not work.
    "$@" --bin quorlock --example bedtool || die 'the programs for the containers could not be built'
    BIN=$CARGO_TARGET_DIR/$profile
    export BIN
    QUORLOCK_IMAGE=$(sh docker/images.sh server) || die 'no image of a server'
    QUORLOCK_APP_IMAGE=$(sh docker/images.sh app) || die 'no image of the project'
    export QUORLOCK_IMAGE QUORLOCK_APP_IMAGE
    case $COMPOSE_PROFILES in *tls*) sh docker/certs.sh "$QUORLOCK_TLS" || die 'no certificates' ;; esac
    choose_ports
    choose_net
    prepare_clocks
    containers_are_up=yes
    compose up --no-start >"$work/compose" 2>&1 || { cat "$work/compose" >&2; die 'the containers could not be made'; }
    if [ -n "$QUORLOCK_PRELOAD" ]; then
        tar -C "$work/clock" -cf - . | docker cp - "$QUORLOCK_PROJECT-m1:/clock" >/dev/null || die 'no clocks for the masters'
    fi
    compose up -d >"$work/compose" 2>&1 || { cat "$work/compose" >&2; die 'the containers could not be started'; }
    waited=0
    until are_healthy; do
        waited=$((waited + 1))
        if [ $waited -gt 60 ]; then
            docker ps -a --filter "label=com.docker.compose.project=$QUORLOCK_PROJECT" --format '{{.Names}} {{.Status}}' |
                grep -v '(healthy)' | while read -r name state; do
                    say "$name: $state: $(docker logs --tail 1 "$name" 2>&1)"
                done
            die 'not all are healthy after a minute'
        fi
        sleep 1
    done
    QUORLOCK_MASTERS=
    for nth in 1 2 3 4 5; do
        eval "port=\$QUORLOCK_PROXY$nth"
        QUORLOCK_MASTERS=$QUORLOCK_MASTERS${QUORLOCK_MASTERS:+,}redis://127.0.0.1:$port
    done
    export QUORLOCK_MASTERS
    say 'five masters are healthy, each behind a proxy that faults can be put on'
}

containers_down() {
    containers_are_up=
    # At once, and also where they are paused or half made.
    ours | while read -r container; do docker rm -f -v "$container" >/dev/null 2>&1 || true; done
    compose down -v -t 1 --remove-orphans >"$work/compose" 2>&1 || cat "$work/compose" >&2
    for kind in network volume; do
        docker $kind ls -q --filter "label=com.docker.compose.project=$QUORLOCK_PROJECT" |
            while read -r left; do docker $kind rm "$left" >/dev/null || true; done
    done
}
