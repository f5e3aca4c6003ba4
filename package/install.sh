#!/bin/sh
# Installs Nightshift @VERSION@ on a Linux host, from the archive that lies beside this script: docs/start/package.md.
#   sh install.sh             the API, the worker and the command        sh install.sh --agent    the agent of a device alone
#   sh install.sh --remove    programs, units and the command go, data stays; with --purge data, settings and users go as well
#   --no-systemd: no units    --key FILE: your own copy of the public key    --unsigned: believe the checksums without a signature
# The same command of a newer release upgrades (--upgrade says the same). It asks no network, and leaves nothing where it fails.
set -eu
version='@VERSION@' key='@KEY@'
from=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
to=/opt/nightshift etc=/etc/nightshift command=/usr/local/bin/nightshift systemd=/etc/systemd/system
names='api worker' user=nightshift units=yes check=signature keyfile='' action=install purge=no undo='' draft='' work=''

fail() { echo "install.sh: $1" >&2; exit 1; }

while [ $# -gt 0 ]; do
  case $1 in
    --agent) names=agent user=nightshift-agent ;;
    --upgrade) ;;
    --remove) action=remove ;;
    --purge) purge=yes ;;
    --no-systemd) units=no ;;
    --unsigned) check=sums ;;
    --key) [ $# -gt 1 ] || fail '--key takes the file of a public key.'; shift; keyfile=$1 ;;
    *) fail "there is no $1: the first lines of this script name what there is." ;;
  esac
  shift
done
state=/var/lib/$user

# What was done is taken back, the last first. A script that is killed leaves a draft, which the next run removes.
finish() {
  status=$?; trap - EXIT
  if [ "$status" -ne 0 ] && [ "$action" = install ]; then
    [ -z "$draft" ] || rm -rf "$draft"
    printf '%s' "$undo" | sh || :
    echo 'install.sh: nothing was installed.' >&2
  fi
  [ -z "$work" ] || rm -rf "$work"
  exit "$status"
}
on_failure() { undo=$(printf '%s\n%s' "$1" "$undo"); }
trap finish EXIT
trap 'exit 130' HUP INT TERM

runs_systemd() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null; }

check_host() {
  case $(uname -sm) in
    'Linux x86_64') arch=x64 loader=/lib64/ld-linux-x86-64.so.2 ;;
    'Linux aarch64') arch=arm64 loader=/lib/ld-linux-aarch64.so.1 ;;
    *) fail "there is no package for $(uname -sm): take the container image, or Linux on x86_64 or aarch64." ;;
  esac
  libc='no glibc'; for musl in /lib/ld-musl-*; do [ ! -e "$musl" ] || libc='musl'; done
  [ -e "$loader" ] || fail "this host has $libc, and Node needs glibc 2.28 or later: take the container image, or a host of Debian, Ubuntu, RHEL or SUSE."
  [ "$units" = no ] || runs_systemd ||
    fail 'systemd does not run here: add --no-systemd, and start the processes by what you have (docs/start/package.md).'
  [ "$names" != agent ] || command -v unshare >/dev/null ||
    fail 'unshare is missing, which confines what an agent reads: apt-get install util-linux.'
  for program in tar:tar xz:xz-utils sha256sum:coreutils useradd:passwd; do
    command -v "${program%:*}" >/dev/null || fail "${program%:*} is missing: apt-get install ${program#*:}."
  done
  place=/opt; [ -d /opt ] || place=/
  free=$(df -Pk "$place" | awk 'NR == 2 {print int($4 / 1024)}')
  [ "$free" -ge 300 ] || fail "$place has $free MB free, and unpacking needs 300 MB: make room there."
}

check_archive() {
  archive=$from/nightshift-$version-linux-$arch.tar.xz sums=$from/SHA256SUMS
  for file in "$archive" "$sums"; do [ -f "$file" ] || fail "$file is missing: download it into the folder of this script."; done
  work=$(mktemp -d)
  if [ "$check" = signature ]; then
    if [ -n "$keyfile" ]; then cp "$keyfile" "$work/key"; else printf '%s\n' "$key" >"$work/key"; fi
    { [ -s "$sums.sig" ] && grep -q PUBLIC "$work/key"; } ||
      fail 'SHA256SUMS.sig or the key is missing: download it, or say --unsigned if you know where the files are from.'
    command -v openssl >/dev/null ||
      fail 'openssl is missing, which checks the signature: apt-get install openssl, or say --unsigned if you know where the files are from.'
    openssl pkeyutl -verify -pubin -inkey "$work/key" -rawin -in "$sums" -sigfile "$sums.sig" >/dev/null 2>&1 ||
      fail 'SHA256SUMS is not signed by this key: download all files again, and compare the key with the one you know.'
  fi
  grep "  ${archive##*/}\$" "$sums" >"$work/sum" || fail "SHA256SUMS does not name ${archive##*/}: download both again."
  (cd "$from" && sha256sum -c "$work/sum" >/dev/null 2>&1) ||
    fail "${archive##*/} is not what its checksum says, half downloaded or altered: download it again."
}

check_older() {
  installed=$(readlink "$to/current" 2>/dev/null || :) stored=$(cat "$state/version" 2>/dev/null || :)
  newest=$(printf '%s\n' "$installed" "$stored" "$version" | sort -V | tail -n 1)
  [ "$newest" = "$version" ] ||
    fail "$state is of $newest, and this is $version: install $newest or later; docs/how-to/backup.md says how to go back."
}

unpack() {
  on_failure "rmdir '$to' 2>/dev/null || :"
  mkdir -p "$to"; rm -rf "$to"/.new-*
  draft=$to/.new-$$; mkdir "$draft"
  tar -xJf "$archive" -C "$draft" --strip-components=1 --no-same-owner 2>"$work/tar" || fail "it could not be unpacked: $(tail -n 1 "$work/tar")"
  "$draft/bin/node" "$draft/lib/cli/main.js" --version >"$work/said" 2>&1 || fail "its Node does not run here: $(tail -n 1 "$work/said")"
}

add_user() {
  ! id "$user" >/dev/null 2>&1 || return 0
  useradd --system --user-group --home-dir "$state" --shell /usr/sbin/nologin "$user"
  on_failure "userdel '$user'"
}

add_folder() { # its rights, its owner, where
  [ -d "$3" ] || on_failure "rmdir '$3' 2>/dev/null || :"
  install -d -m "$1" "$3"; chown "$2" "$3"
}

add_unit() { # the one before comes back where a later step fails
  unit=$systemd/nightshift-$1.service
  if [ -e "$unit" ]; then cp -p "$unit" "$work/$1"; on_failure "cp -p '$work/$1' '$unit'"; else on_failure "rm -f '$unit'"; fi
  cp "$draft/units/${unit##*/}" "$unit.new"; mv "$unit.new" "$unit"
}

install_it() {
  check_host; check_archive; check_older; unpack; add_user
  add_folder 751 "root:$user" "$etc"; add_folder 700 "$user:$user" "$state"
  [ "$units" = no ] || for name in $names; do add_unit "$name"; done
  if [ -d "$to/$version" ]; then mv "$to/$version" "$draft.old"; on_failure "mv '$draft.old' '$to/$version'"; fi
  on_failure "rm -rf '$to/$version'"
  mv "$draft" "$to/$version"
  [ -e "$command" ] || on_failure "rm -f '$command'"
  mkdir -p "${command%/*}"; ln -sfn "$to/current/bin/nightshift" "$command"
  ln -sfn "$version" "$to/.current"; mv -T "$to/.current" "$to/current"
  action='done'
  echo "$version" >"$state/version"; rm -rf "$to"/.new-*
  # The release before stays, to go back to; older ones go.
  for old in "$to"/[0-9]*; do case ${old##*/} in "$version" | "$installed") ;; *) rm -rf "$old" ;; esac; done
  if [ "$units" = yes ]; then systemctl daemon-reload; for name in $names; do systemctl try-restart "nightshift-$name"; done; fi
  echo "Nightshift $version is in $to/current, and $command runs it. What comes next: docs/start/package.md"
}

remove_it() {
  for unit in api worker agent; do
    [ ! -e "$systemd/nightshift-$unit.service" ] || ! runs_systemd || systemctl disable --now "nightshift-$unit"
    rm -f "$systemd/nightshift-$unit.service"
  done
  ! runs_systemd || systemctl daemon-reload
  [ "$(readlink "$command" || :)" != "$to/current/bin/nightshift" ] || rm -f "$command"
  rm -rf "$to"
  if [ "$purge" = no ]; then echo "Nightshift is removed; $etc and /var/lib/nightshift* stay (--remove --purge)."; return; fi
  rm -rf "$etc" /var/lib/nightshift /var/lib/nightshift-agent
  for user in nightshift nightshift-agent; do ! id "$user" >/dev/null 2>&1 || userdel "$user"; done
  echo 'Nightshift is removed, with its settings, its folders and its users. Its database is as it was.'
}

[ "$(id -u)" -eq 0 ] || fail 'this needs root: run it with sudo.'
"${action}_it"
