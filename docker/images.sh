#!/bin/sh
# The images of the test bed. Prints the image's name; says on standard error where it comes from.
#   sh docker/images.sh server   the public image if it is here or can be pulled soon, else one made of this machine's server
#   sh docker/images.sh app      the project's own programs, from BIN (by default target/release); `run.sh` builds them first
#   sh docker/images.sh clean    removes what this script made and no container uses
# $QUORLOCK_IMAGE names another public image; QUORLOCK_IMAGE=local does without. $QUORLOCK_SERVER names the server program.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2016 # the variable's name is looked for, not its value
public=$(sed -n 's/^ *image: "${QUORLOCK_IMAGE:-\(.*\)}"$/\1/p' "$here/compose.yaml")
pull_within=20 # seconds

say() { printf 'quorlock: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# There is no `timeout` in POSIX. The command's status, or 1 after so many seconds.
within() {
    seconds=$1
    shift
    "$@" >/dev/null 2>&1 &
    running=$!
    while kill -0 "$running" 2>/dev/null; do
        [ "$seconds" -gt 0 ] || { kill "$running" 2>/dev/null || true; return 1; }
        sleep 1
        seconds=$((seconds - 1))
    done
    wait "$running"
}

is_here() { docker image inspect "$1" >/dev/null 2>&1; }

# A program with every library it names, at the places where it looks for them.
put() { # PROGRAM AS
    mkdir -p "$root$(dirname "$2")"
    # The file itself: redis-server is a link in Debian, to a program of several names.
    cp -L "$1" "$root$2"
    chmod 755 "$root$2"
    # A program without libraries makes ldd fail, and needs none.
    { ldd "$1" 2>/dev/null || true; } | grep -o '/[^ ]*' | sort -u | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        [ -e "$root$library" ] || cp -L "$library" "$root$library"
    done
}

# Makes an image of $root, unless the same is here already: named by what is in it.
image() { # NAME CHANGE...
    name=$1
    shift
    mkdir -p "$root/tmp" "$root/data" "$root/etc"
    chmod 1777 "$root/tmp" "$root/data"
    content=$(cd "$root" && { find . -type f -exec sha256sum {} + | LC_ALL=C sort; echo "$*"; } | sha256sum | cut -c1-12)
    tag=$name:local-$content
    if is_here "$tag"; then
        say "image: $tag (made before, of the same programs)"
    else
        set -- "$@" 'LABEL io.quorlock.made-by=images.sh'
        for change in "$@"; do
            set -- "$@" --change "$change"
            shift
        done
        tar -C "$root" -c . | docker import "$@" - "$tag" >/dev/null
        say "image: $tag (made here, no registry needed)"
    fi
    echo "$tag"
}

find_program() { # NAME...
    for name in "$@"; do
        if command -v "$name"; then return; fi
    done
    return 1
}

server() {
    wanted=${QUORLOCK_IMAGE:-$public}
    if [ "$wanted" != local ]; then
        if is_here "$wanted"; then
            say "image: $wanted (here already)"
            echo "$wanted"
            return
        fi
        say "pulling $wanted, for at most $pull_within s"
        if within "$pull_within" docker pull "$wanted" && is_here "$wanted"; then
            say "image: $wanted (pulled)"
            echo "$wanted"
            return
        fi
        [ -z "${QUORLOCK_IMAGE:-}" ] || die "$wanted is not here and could not be pulled; QUORLOCK_IMAGE=local makes one of this machine's server"
        say "$wanted could not be pulled; making an image of this machine's server"
    fi
    program=${QUORLOCK_SERVER:-$(find_program valkey-server redis-server || true)}
    [ -n "$program" ] || die 'no server program to make an image of: QUORLOCK_SERVER=/path/to/valkey-server names one'
    put "$program" /usr/bin/redis-server
    if cli=$(find_program valkey-cli redis-cli); then
        put "$cli" /usr/bin/redis-cli
    elif [ -x "$bedtool" ]; then
        put "$bedtool" /usr/bin/redis-cli
    else
        die 'no redis-cli or valkey-cli in PATH, and in a checkout no bedtool to stand in for it: cargo build --release --features cli --example bedtool'
    fi
    image quorlock/server 'ENTRYPOINT ["/usr/bin/redis-server"]' 'EXPOSE 6379' 'WORKDIR /data'
}

app() {
    for program in "$bin/quorlock" "$bedtool"; do
        [ -x "$program" ] || die "$program does not exist: cargo build --release --features cli,tls --bin quorlock --example bedtool"
        put "$program" "/usr/bin/$(basename "$program")"
    done
    image quorlock/app 'ENTRYPOINT ["/usr/bin/quorlock"]' 'WORKDIR /tmp'
}

clean() {
    docker image ls --filter label=io.quorlock.made-by=images.sh --format '{{.Repository}}:{{.Tag}}' | while read -r tag; do
        if docker image rm "$tag" >/dev/null 2>&1; then say "removed $tag"; else say "$tag is in use"; fi
    done
}

command -v docker >/dev/null || die 'no docker in PATH'
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
bin=${BIN:-${CARGO_TARGET_DIR:-$here/../target}/release}
bedtool=$bin/examples/bedtool

case ${1:-} in
    server) server ;;
    app) app ;;
    clean) clean ;;
    *) sed -n '2,6s/^# //p' "$0" >&2; exit 2 ;;
esac
