import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const checkout = join(import.meta.dirname, '../../..')
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/**
 * Stands for systemd, which no root without a machine has: it starts what a unit says, as its user
 * and with its environment.
 */
const systemctl = `#!/bin/sh
case "$*" in
  *start*postgresql*) exec pg_ctlcluster --skip-systemctl-redirect 15 main start ;;
  enable*) shift 2 ;;
  *) exit 0 ;;
esac
for name; do
  unit=/etc/systemd/system/$name.service
  all() { sed -n "s/^$1=-\\{0,1\\}//p" "$unit"; }
  (
    unset HOME XDG_CACHE_HOME
    set -a
    for pair in $(all Environment); do export "$pair"; done
    for file in $(all EnvironmentFile); do [ ! -e "$file" ] || . "$file"; done
    set +a
    directory=$(all WorkingDirectory)
    cd "\${directory:-/}" || exit 1
    user=$(all User)
    as="setpriv --reuid=$user --regid=$user --init-groups"
    pre=$(all ExecStartPre)
    [ -z "$pre" ] || $as $pre || exit 1
    setsid $as $(all ExecStart) >"/var/log/$name.log" 2>&1 &
    echo $! >"/run/$name.pid"
  ) || exit 1
done
`

/**
 * A Debian of debootstrap that holds its essential packages alone, made once; a copy of it at `to`.
 */
export function debianRoot(to: string): void {
  const base = join(checkout, '.cache/debian-bookworm')
  if (!existsSync(base)) {
    mkdirSync(join(checkout, '.cache'), { recursive: true })
    rmSync(`${base}.new`, { recursive: true, force: true })
    execFileSync('debootstrap', ['--variant=minbase', 'bookworm', `${base}.new`], { stdio: 'ignore' })
    renameSync(`${base}.new`, base)
  }
  execFileSync('cp', ['-a', base, to])
  // Debian's archive as this machine reaches it.
  for (const file of ['/etc/resolv.conf', '/etc/apt/apt.conf.d', '/etc/hosts'])
    if (existsSync(file)) cpSync(file, join(to, file), { recursive: true, dereference: true, force: true })
  writeFileSync(join(to, 'usr/bin/systemctl'), systemctl)
  chmodSync(join(to, 'usr/bin/systemctl'), 0o755)
}

/** The lines of each block of code of a page, in their order. */
export function blocksOf(page: string): string[] {
  return [...page.matchAll(/^```\n([\s\S]*?)^```$/gm)].map(([, lines = '']) => lines)
}

/**
 * Runs a script as root of that root, with processes and mounts of its own that end with it. It is
 * the root of its mounts, since the kernel makes no user namespaces, which confine an agent's
 * looks, below a mere chroot. Without the network it has the loopback alone, and no port of this
 * machine is in the way.
 */
export function inRoot(root: string, script: string, { network }: { network: boolean }): SpawnSyncReturns<string> {
  const begin = `set -e
mount --bind "$1" "$1" && cd "$1"
mount -t proc proc proc && mount --rbind /dev dev && mount -t tmpfs tmpfs run && mkdir -p run/systemd/system
${network ? '' : 'ip link set lo up'}
mkdir -p .before && pivot_root . .before && cd / && umount -l /.before
exec /bin/bash -c "$2"`
  const spaces = ['--mount', '--pid', '--fork', '--kill-child', ...(network ? [] : ['--net'])]
  return spawnSync('unshare', [...spaces, 'sh', '-c', begin, 'sh', root, script], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    env: { PATH: path, HOME: '/root', LC_ALL: 'C.UTF-8', DEBIAN_FRONTEND: 'noninteractive' },
  })
}
