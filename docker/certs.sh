#!/bin/sh
# What the profile `tls` needs, made anew in a directory: an authority, one certificate for all masters, and the users' file
# with a password of its own. For a test bed on this machine: the keys can be read by everyone who can enter the directory.
#   sh docker/certs.sh DIRECTORY
set -eu

[ $# -eq 1 ] || { echo 'usage: sh docker/certs.sh DIRECTORY' >&2; exit 2; }
command -v openssl >/dev/null || { echo 'certs.sh: no openssl in PATH' >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }

key ca.key
openssl req -x509 -new -key ca.key -subj '/CN=quorlock test bed' -days 30 -out ca.pem
key master.key
cat >extensions <<'EXTENSIONS'
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost, IP:127.0.0.1, DNS:t1, DNS:t2, DNS:t3, DNS:t4, DNS:t5
EXTENSIONS
openssl req -new -key master.key -subj '/CN=master' -out master.csr
openssl x509 -req -in master.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile extensions -out master.pem 2>signed ||
    { cat signed >&2; exit 1; }
rm -f master.csr extensions signed ca.key ca.srl

openssl rand -hex 16 >password
sed "s/>PASSWORD/>$(cat password)/" "$here/users.acl" >users.acl
# The masters in their containers are another user.
chmod 755 .
chmod 644 ca.pem master.pem master.key users.acl
chmod 600 password
