#!/usr/bin/env bash
# A throwaway PostgreSQL for the tests: "start DIR" prints its DSN, "stop DIR" ends and removes it.
# Installs Debian's packages where there is none.
set -euo pipefail

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# The server refuses to run as root, so root lends it the user that the package makes.
as_server() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

# The folder of the newest server; a client alone has a folder too, but no initdb.
bin() {
    find /usr/lib/postgresql -maxdepth 3 -path '*/bin/initdb' 2>/dev/null | sort -V | tail -1 |
        sed 's|/initdb$||'
}

start() {
    local dir=$1
    if [ -z "$(bin)" ]; then
        as_root apt-get update -qq >&2
        # No cluster of the package's own: ours is made below.
        as_root mkdir -p /etc/postgresql-common
        echo "create_main_cluster = false" | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
        DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends postgresql >&2
    fi
    mkdir -p "$dir"
    if [ "$(id -u)" = 0 ]; then chown postgres "$dir"; fi
    as_server "$(bin)/initdb" -D "$dir/data" -U stair -A trust -E UTF8 --locale=C.UTF-8 --no-sync >&2
    # No TCP port at all: a socket in our own folder can collide with nobody.
    as_server "$(bin)/pg_ctl" -D "$dir/data" -w -l "$dir/log" \
        -o "-c listen_addresses='' -c unix_socket_directories='$dir' -c fsync=off" start >&2
    echo "host=$dir user=stair dbname=postgres"
}

stop() {
    local dir=$1
    if [ -e "$dir/data/postmaster.pid" ]; then
        as_server "$(bin)/pg_ctl" -D "$dir/data" -m immediate stop >&2
    fi
    rm -rf "$dir"
}

"$@"
