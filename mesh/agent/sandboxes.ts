import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import type { AgentSight } from './capability.ts'
import type { Confinement } from './confine.ts'
import { dropAll, find, isRoot, search, withoutMore } from './programs.ts'

/**
 * `/proc` stays the machine's own: `ps` in a sandbox must show all processes. A namespace of users
 * keeps it from leading out.
 */
export function byBwrap(hidden: HiddenPaths): Confinement | null {
  const bwrap = find('bwrap')
  if (!bwrap) return null
  const devices = ['null', 'zero', 'full', 'random', 'urandom'].flatMap((name) => [
    '--dev-bind',
    `/dev/${name}`,
    `/dev/${name}`,
  ])
  // Half of the memory else, which no limit of a process counts. Older ones than 0.7 cannot; a file
  // is small even there (`run.ts`).
  const { stdout } = spawnSync(bwrap, ['--help'], { encoding: 'utf8', timeout: 5_000 })
  const small = stdout?.includes('--size ') ? ['--size', String(32 << 20)] : []
  return {
    sandbox: 'bwrap',
    async wrap(argv, { cwd, sees = [] }) {
      return [
        bwrap,
        '--ro-bind',
        '/',
        '/',
        ...devices,
        ...small,
        '--tmpfs',
        '/dev/shm',
        ...covers(hidden, sees.includes('rehearsals')),
        '--chdir',
        cwd,
        '--unshare-user',
        '--unshare-pid',
        '--unshare-ipc',
        ...(sees.includes('network') ? [] : ['--unshare-net']),
        '--die-with-parent',
        '--new-session',
        '--cap-drop',
        'ALL',
        '--',
        ...argv,
      ]
    },
    environment: { TMPDIR: '/dev/shm' },
    endsWhole: () => true,
    // Each mount that it makes is marked nosuid, so the machine's table cannot be read in there.
    canShow: (sees) => !sees.includes('mounts'),
    close: () => undefined,
  }
}

/** Empty directories and files over what is hidden in there. */
function covers({ paths, rehearsals }: HiddenPaths, withRehearsals: boolean): string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
  const covered = [...new Set(paths.flatMap((path) => shownAt(path, mounts)))].sort((a, b) => b.length - a.length)
  const shown = withRehearsals && rehearsals !== null && existsSync(rehearsals) ? rehearsals : null
  return covered.flatMap((path) => {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return ['--ro-bind', '/dev/null', path]
    const inside = shown?.startsWith(`${path}/`) ? ['--ro-bind', shown, shown] : []
    return ['--tmpfs', path, ...inside, '--remount-ro', path]
  })
}

/**
 * Processes that hold namespaces, one for each thing that a command may have to see; each command
 * enters one and gets its own namespace of processes. Setting one up takes 50 ms, entering it 5.
 * They end with the agent, and are replaced when the machine mounts something, which would
 * otherwise be missing in there.
 */
export function byUnshare(hidden: HiddenPaths): Confinement | null {
  const [unshare, nsenter, setpriv] = ['unshare', 'nsenter', 'setpriv'].map(find)
  if (!unshare || !nsenter || !setpriv) return null
  const held = new Map<string, { holder: Promise<ChildProcess>; mounts: string }>()

  function holderOf(sees: readonly AgentSight[]): Promise<ChildProcess> {
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    const kind = [...sees].sort().join()
    const known = held.get(kind)
    if (known?.mounts === mounts) return known.holder
    void known?.holder.then(endLater, () => undefined)
    const holder = hold(unshare as string, sees, { hidden, mounts })
    held.set(kind, { holder, mounts })
    const forget = () => {
      if (held.get(kind)?.holder === holder) held.delete(kind)
    }
    holder.then((child) => child.once('exit', forget), forget)
    return holder
  }

  return {
    sandbox: 'unshare',
    async wrap(argv, { cwd, sees = [] }) {
      const { pid } = await holderOf(sees)
      const namespaces = ['--user', '--mount', '--ipc', ...(sees.includes('network') ? [] : ['--net'])]
      return [
        nsenter,
        '--target',
        String(pid),
        ...namespaces,
        '--preserve-credentials',
        `--wdns=${cwd}`,
        '--',
        ...(isRoot() ? [unshare, '--pid', '--fork', '--kill-child', '--'] : []),
        setpriv,
        ...withoutMore(),
        '--',
        ...argv,
      ]
    },
    // A file system in memory that only the sandbox has; beside the machine's mounts it lacks one.
    environment: { TMPDIR: '/dev/shm' },
    endsWhole: isRoot,
    canShow: () => true,
    close() {
      for (const { holder } of held.values()) void holder.then(end, () => undefined)
    },
  }
}

/** A program may be about to enter; one that is inside stays inside. */
function endLater(child: ChildProcess): void {
  setTimeout(() => end(child), 10_000).unref()
}

function end(child: ChildProcess): void {
  child.kill('SIGKILL')
}

/**
 * Every mount is made read-only and without devices, but for the handful that every program needs.
 * Flags that were set stay, since the kernel lets no process in here remove them.
 */
const readOnly = `
for device in null zero full random urandom; do mount --bind "/dev/$device" "/dev/$device"; done
mount -t tmpfs -o size=32m,mode=1777,nosuid,nodev,noexec tmpfs /dev/shm
while read -r _ _ _ _ target options _; do
  case "$target" in /dev/null|/dev/zero|/dev/full|/dev/random|/dev/urandom|/dev/shm) continue;; esac
  case "$options" in ro|ro,*) continue;; esac
  mount -o "remount,bind,nodev,ro,\${options#rw,}" "$(printf '%b' "$target")"
done < /proc/self/mountinfo`

/** Arguments: the directory of rehearsals or nothing, then each path that is covered. */
const cover = `
rehearsals=$1; shift
if [ -n "$rehearsals" ]; then mkdir /dev/shm/rehearsals; mount --bind "$rehearsals" /dev/shm/rehearsals; fi
for path; do
  if [ -d "$path" ]; then mount -t tmpfs -o size=64k,mode=755,nosuid,nodev,noexec tmpfs "$path"
  else mount --bind /dev/null "$path"; fi
done
if [ -n "$rehearsals" ]; then
  mkdir -p "$rehearsals"; mount --bind /dev/shm/rehearsals "$rehearsals"; mount -o remount,bind,nodev,ro "$rehearsals"
  umount /dev/shm/rehearsals; rmdir /dev/shm/rehearsals
fi
for path; do if [ -d "$path" ]; then mount -o remount,ro,mode=755,nosuid,nodev,noexec "$path"; fi; done`

function hold(
  unshare: string,
  sees: readonly AgentSight[],
  { hidden, mounts }: { hidden: HiddenPaths; mounts: string },
): Promise<ChildProcess> {
  const shown = sees.includes('rehearsals') && hidden.rehearsals !== null && existsSync(hidden.rehearsals)
  // The deepest first, so that none is covered before its turn; the flags of the machine's own
  // mounts stay where they are looked at.
  const covered = hidden.paths
    .flatMap((path) => shownAt(path, mounts))
    .sort((a, b) => b.length - a.length)
    .filter((path, at, all) => all.indexOf(path) === at && statSync(path, { throwIfNoEntry: false }))
  const script = `set -e${sees.includes('mounts') ? '' : readOnly}${cover}\necho held\nexec cat`
  const namespaces = ['--user', '--map-current-user', '--keep-caps', '--mount', '--ipc']
  const child = spawn(
    unshare,
    [
      ...namespaces,
      ...(sees.includes('network') ? [] : ['--net']),
      '--',
      '/bin/sh',
      '-c',
      script,
      'sh',
      shown ? (hidden.rehearsals as string) : '',
      ...covered,
    ],
    // Its input is ours: it ends when we do.
    { stdio: ['pipe', 'pipe', 'ignore'], env: { PATH: search.join(':') }, cwd: '/', detached: true },
  )
  child.stdin?.on('error', () => undefined)
  child.unref()
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the sandbox ended with ${code}`)))
    child.stdout?.once('data', (chunk: Buffer) => {
      if (chunk.toString().startsWith('held')) resolve(child)
      else reject(new Error('the sandbox said something else'))
    })
  })
}

/**
 * Root becomes nobody: it reads what everybody may, writes only where everybody may, and has the
 * network. The agent's own files are closed to it by their modes. A program that obeys something is
 * not kept back by that, so none runs unasked here (`guard.ts`).
 */
export function byUser(): Confinement | null {
  const setpriv = find('setpriv')
  if (!setpriv || !isRoot()) return null
  const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups', ...dropAll]
  return {
    sandbox: 'user',
    wrap: async (argv) => [setpriv, ...nobody, '--', ...argv],
    environment: {},
    endsWhole: () => false,
    canShow: () => true,
    close: () => undefined,
  }
}

/**
 * What belongs to the agent alone: its state with journal and nonces, and files of keys that lie
 * elsewhere.
 */
export type HiddenPaths = {
  paths: readonly string[]
  /** A directory below one of them that a rehearsed check has to see. */
  rehearsals: string | null
}

export const nothingHidden: HiddenPaths = { paths: [], rehearsals: null }

type Mount = { device: string; root: string; target: string }

/**
 * Every path by which this machine shows one of them. A file system may be mounted at several
 * places, and a mask over one of them would leave the others.
 */
export function shownAt(path: string, mountinfo: string): string[] {
  const real = existing(path)
  if (real === null) return []
  const mounts = mountsIn(mountinfo)
  // Of mounts on top of each other the last one is seen.
  const own = mounts
    .filter(({ target }) => isBelow(real, target))
    .reduce<Mount | null>((best, each) => (best && best.target.length > each.target.length ? best : each), null)
  if (!own) return [real]
  const inside = joined(own.root, real.slice(own.target === '/' ? 0 : own.target.length))
  const found = new Set([real])
  for (const { device, root, target } of mounts) {
    if (device !== own.device || !isBelow(inside, root)) continue
    const other = joined(target, inside.slice(root === '/' ? 0 : root.length))
    if (isSame(real, other)) found.add(other)
  }
  return [...found]
}

/** "36 35 98:0 /root /target options …": what is odd in a name is written as `\040`. */
function mountsIn(mountinfo: string): Mount[] {
  return mountinfo
    .split('\n')
    .map((line) => line.split(' '))
    .filter((fields) => fields.length > 5)
    .map(([, , device, root, target]) => ({ device: device!, root: plain(root!), target: plain(target!) }))
}

const plain = (name: string): string =>
  name.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)))

const isBelow = (path: string, directory: string): boolean =>
  directory === '/' || path === directory || path.startsWith(`${directory}/`)

const joined = (directory: string, rest: string): string => (directory === '/' ? '' : directory) + rest || '/'

function existing(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

function isSame(one: string, other: string): boolean {
  try {
    const [a, b] = [statSync(one), statSync(other)]
    return a.ino === b.ino && a.dev === b.dev
  } catch {
    return false
  }
}
