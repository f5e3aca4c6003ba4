#!/bin/sh
# Installs Nightshift @VERSION@ on a Linux host, from the archive in the same folder as this script:
# docs/start/package.md.
#   sh install.sh             the API, the worker and the command
#   sh install.sh --agent     only the agent of a device
#   sh install.sh --remove    removes programs, units and the command, and keeps data;
#                             with --purge also removes data, settings and users
#   --no-systemd: no units    --key FILE: your own copy of the public key
#   --unsigned: trust the checksums without a signature
# The same command of a newer release upgrades (--upgrade does the same). The script uses no
# network. If it fails, it leaves nothing behind.
set -eu
# With a strict umask, the users of the services could not read what the services run.
umask 022
version='@VERSION@' key='@KEY@'
from=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
to=/opt/nightshift etc=/etc/nightshift command=/usr/local/bin/nightshift systemd=/etc/systemd/system
names='api worker' user=nightshift units=yes check=signature keyfile='' action=install purge=no undo='' draft='' work='' installed=''

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
[ "$purge" = no ] || [ "$action" = remove ] || fail '--purge belongs to --remove: nothing was done.'
# Root writes nothing into a folder of another user, because that user could have put a symbolic
# link there.
state=/var/lib/$user stamp=$etc/.$user-version

# If the script fails, it undoes its steps, the last step first. If it is killed, it leaves a draft,
# which the next run removes.
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

# Lists running processes of the package, except those of release $1 ("none" excepts none). Includes
# processes that no unit started. Ignores processes in containers, whose folder is another one.
list_running() {
  [ -d "$to" ] || return 0
  for exe in /proc/[0-9]*/exe; do
    case $(readlink "$exe" 2>/dev/null || :) in
      "$to/$1/bin/node" | "$to/.old-$1/bin/node"*) ;;
      "$to"/*/bin/node*)
        [ "$(stat -Lc %d:%i "${exe%/exe}/root$to" 2>/dev/null || :)" = "$(stat -Lc %d:%i "$to")" ] || continue
        exe=${exe#/proc/}; printf ' %s' "${exe%/exe}" ;;
    esac
  done
}
is_own_command() { [ "$(readlink "$command" 2>/dev/null || :)" = "$to/current/bin/nightshift" ]; }

# Neither replaces nor removes a person's checkout, or a link that npm made.
check_folder() {
  others=$(ls -A "$to" 2>/dev/null | grep -vE '^([0-9].*|current|\.current|\.new-.*|\.old-.*)$' | head -n 1 || :)
  [ -z "$others" ] || fail "$to holds what this script did not put there ($others): move it to another place."
}
check_command() {
  { [ ! -e "$command" ] && [ ! -L "$command" ]; } || is_own_command ||
    fail "$command is another command, of a checkout perhaps: move it away."
}

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
  place=$to; until [ -d "$place/" ]; do place=${place%/*}; done
  free=$(df -Pk "$place/" | awk 'NR == 2 {print int($4 / 1024)}')
  [ "$free" -ge 300 ] || fail "${place:-/} has $free MB free, and unpacking needs 300 MB: make room there."
}

check_archive() {
  archive=$from/nightshift-$version-linux-$arch.tar.xz sums=$from/SHA256SUMS
  for file in "$archive" "$sums"; do [ -f "$file" ] || fail "$file is missing: download it into the folder of this script."; done
  work=$(TMPDIR=/tmp mktemp -d)
  if [ "$check" = signature ]; then
    if [ -n "$keyfile" ]; then cat "$keyfile" >"$work/key" 2>/dev/null || fail "$keyfile cannot be read: --key takes the file of a public key."; else printf '%s\n' "$key" >"$work/key"; fi
    { [ -s "$sums.sig" ] && grep -q PUBLIC "$work/key"; } ||
      fail 'SHA256SUMS.sig or the key is missing: download it, or say --unsigned if you know where the files are from.'
    command -v openssl >/dev/null ||
      fail 'openssl is missing, which checks the signature: apt-get install openssl, or say --unsigned if you know where the files are from.'
    openssl pkeyutl -help 2>&1 | grep -q -e -rawin ||
      fail "$(openssl version 2>/dev/null || echo openssl) cannot check this kind of signature: install OpenSSL 3, or compare the sums on a host that has it (docs/how-to/air-gapped.md) and say --unsigned."
    openssl pkeyutl -verify -pubin -inkey "$work/key" -rawin -in "$sums" -sigfile "$sums.sig" >/dev/null 2>&1 ||
      fail 'SHA256SUMS is not signed by this key: download all files again, and compare the key with the one you know.'
  fi
  grep "  ${archive##*/}\$" "$sums" >"$work/sum" || fail "SHA256SUMS does not name ${archive##*/}: download both again."
  (cd "$from" && sha256sum -c "$work/sum" >/dev/null 2>&1) ||
    fail "${archive##*/} is not what its checksum says, half downloaded or altered: download it again."
}

check_older() {
  installed=$(readlink "$to/current" 2>/dev/null || :) stored=$(cat "$stamp" 2>/dev/null || :)
  # Sorts with tr and sort -V, so that 1.0.0-rc.1 is older than 1.0.0.
  newest=$(printf '%s\n' "$installed" "$stored" "$version" | tr - '~' | sort -V | tail -n 1 | tr '~' -)
  [ "$newest" = "$version" ] ||
    fail "$state is of $newest, and this is $version: install $newest or later; docs/how-to/backup.md says how to go back."
}

unpack() {
  on_failure "rmdir '$to' 2>/dev/null || :"
  mkdir -p "$to"; rm -rf "$to"/.new-*
  # Puts a release back, or removes it, if a run was killed while it replaced that release.
  for old in "$to"/.old-*; do
    [ ! -d "$old" ] || if [ -d "$to/${old##*/.old-}" ]; then rm -rf "$old"; else mv "$old" "$to/${old##*/.old-}"; fi
  done
  draft=$to/.new-$$; mkdir "$draft"
  tar -xJf "$archive" -C "$draft" --strip-components=1 --no-same-owner 2>"$work/tar" || fail "it could not be unpacked: $(tail -n 1 "$work/tar")"
  "$draft/bin/node" "$draft/lib/cli/main.js" --version >"$work/said" 2>&1 || fail "its Node does not run here: $(tail -n 1 "$work/said")"
}

add_user() {
  ! id "$user" >/dev/null 2>&1 || return 0
  useradd --system --user-group --home-dir "$state" --shell /usr/sbin/nologin "$user"
  on_failure "userdel '$user'"
}

add_folder() { # MODE OWNER PATH
  [ -d "$3" ] || on_failure "rmdir '$3' 2>/dev/null || :"
  install -d -m "$1" "$3"; chown "$2" "$3"
}

add_unit() { # NAME; the unit before is restored if a later step fails
  unit=$systemd/nightshift-$1.service
  if [ -e "$unit" ]; then cp -p "$unit" "$work/$1"; on_failure "cp -p '$work/$1' '$unit'"; else on_failure "rm -f '$unit'"; fi
  if [ -e "$unit" ] && ! cmp -s "$unit" "$to/current/units/${unit##*/}" && ! cmp -s "$unit" "$draft/units/${unit##*/}"; then
    on_failure "rm -f '$unit.yours'"
    cp -p "$unit" "$unit.yours"
    echo "$unit was changed here: it is kept as $unit.yours. Changes in \"systemctl edit nightshift-$1\" outlive an upgrade."
  fi
  cp "$draft/units/${unit##*/}" "$unit.new"; mv "$unit.new" "$unit"
}

# Takes a lock, because two runs at once would take each other's draft for a leftover. It ends with
# its script, however that ends.
lock_host() {
  command -v flock >/dev/null || fail 'flock is missing: apt-get install util-linux.'
  # Opens the lock in a place that only root can open. A lock file of another user could keep
  # everybody out.
  umask 077; exec 9>>/run/nightshift-install.lock; umask 022
  flock -n 9 || fail 'another install.sh is at work on this host: run this again when it has ended.'
}

install_it() {
  check_host; lock_host; check_folder; check_command; check_older; check_archive; unpack; add_user
  # Also updates the other units of this host, because server and agent of one host must be of the
  # same release.
  [ "$installed" = "$version" ] || for name in api worker agent; do case " $names " in *" $name "*) ;; *) [ ! -e "$systemd/nightshift-$name.service" ] || names="$names $name" ;; esac; done
  # Keeps the rights of a folder that exists, because a person may have closed it.
  [ -d "$etc" ] || add_folder 751 "root:$user" "$etc"
  add_folder 700 "$user:$user" "$state"
  [ "$units" = no ] || for name in $names; do add_unit "$name"; done
  if [ -d "$to/$version" ]; then mv "$to/$version" "$to/.old-$version"; on_failure "mv '$to/.old-$version' '$to/$version'"; fi
  on_failure "rm -rf '$to/$version'"
  mv "$draft" "$to/$version"
  [ -e "$command" ] || on_failure "rm -f '$command'"
  mkdir -p "${command%/*}"; ln -sfn "$to/current/bin/nightshift" "$command"
  ln -sfn "$version" "$to/.current"; mv -T "$to/.current" "$to/current"
  action='done'
  echo "$version" >"$stamp"; rm -rf "$to"/.new-* "$to"/.old-*
  # Keeps the release before this one, so that a person can go back, and removes older releases.
  for old in "$to"/[0-9]*; do case ${old##*/} in "$version" | "$installed") ;; *) rm -rf "$old" ;; esac; done
  if [ "$units" = yes ]; then
    systemctl daemon-reload
    for name in $names; do systemctl try-restart "nightshift-$name" || echo "nightshift-$name did not start again: journalctl -u nightshift-$name says why." >&2; done
  fi
  running=$(list_running "$version")
  [ -z "$running" ] || echo "The processes$running still run what was there before: start them again."
  echo "Nightshift $version is in $to/current, and $command runs it. What comes next: docs/start/package.md"
}

remove_it() {
  [ "$user" = nightshift ] || [ ! -d /var/lib/nightshift ] ||
    fail 'the server is on this host as well, and --remove takes both: say it without --agent, or end the agent alone with "systemctl disable --now nightshift-agent".'
  lock_host; check_folder
  for unit in api worker agent; do [ ! -e "$systemd/nightshift-$unit.service" ] || ! runs_systemd || systemctl stop "nightshift-$unit"; done
  running=$(list_running none)
  [ -z "$running" ] || fail "Nightshift runs in the processes$running: end them, and run this again. Nothing was removed."
  for unit in api worker agent; do
    [ ! -e "$systemd/nightshift-$unit.service" ] || ! runs_systemd || systemctl disable "nightshift-$unit"
    rm -f "$systemd/nightshift-$unit.service"
  done
  ! runs_systemd || systemctl daemon-reload
  ! is_own_command || rm -f "$command"
  rm -rf "$to"
  if [ "$purge" = no ]; then echo "Nightshift is removed; $etc and /var/lib/nightshift* stay (--remove --purge)."; return; fi
  rm -rf "$etc" /var/lib/nightshift /var/lib/nightshift-agent
  # Removes only users with this home, because a person with the same name has another home.
  for user in nightshift nightshift-agent; do ! grep -q "^$user:.*:/var/lib/$user:" /etc/passwd || userdel "$user"; done
  echo 'Nightshift is removed, with its settings, its folders and its users. Its database is as it was.'
}

[ "$(id -u)" -eq 0 ] || fail 'this needs root: run it with sudo.'
"${action}_it"
