#!/bin/sh
# GoogleTest: the system's, installed when we are root on Debian/Ubuntu, else unpacked under the environment.
set -e
venv=$1
[ -f /usr/include/gtest/gtest.h ] && ls /usr/lib/*/libgtest.a >/dev/null 2>&1 && exit 0
[ -f "$venv/deps/usr/include/gtest/gtest.h" ] && exit 0
if command -v apt-get >/dev/null; then
  if [ "$(id -u)" = 0 ] && { apt-get install -y -qq libgtest-dev >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq libgtest-dev >/dev/null; }; }; then exit 0; fi
  mkdir -p "$venv/deps" && cd "$venv/deps" && apt-get download libgtest-dev >/dev/null 2>&1 && for d in libgtest-dev*.deb; do dpkg -x "$d" .; done && exit 0
fi
echo "GoogleTest is missing: apt-get install libgtest-dev" >&2
exit 1
