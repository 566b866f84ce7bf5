#!/bin/sh
# Installs Debian's Chromium where no Chromium is; says so where it cannot.
set -eu

for name in chromium chromium-browser google-chrome chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
if ! command -v apt-get >/dev/null; then
    echo "no Chromium here, and no apt-get to install one with" >&2
    exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi
$as_root apt-get update -qq
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends chromium
