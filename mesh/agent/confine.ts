import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { accessSync, constants, readFileSync } from 'node:fs'
import type { RunOptions } from './capability.ts'
import type { Sandbox } from './guard.ts'

type Where = { cwd: string; sees?: RunOptions['sees'] }

/** How reads are confined on this machine. */
export type Confinement = {
  sandbox: Sandbox
  /** The program with what goes before it so that it can neither write files nor, unless it must see it, reach the network. */
  wrap(argv: readonly string[], at: Where): Promise<string[]>
  /** A program's own namespace of processes ends with it, so that nothing it started is left. */
  endsWhole(at: Pick<Where, 'sees'>): boolean
  /** For programs that need room for a moment: nothing else can be written. */
  environment: Record<string, string>
  close(): void
}

const search = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']
const dropAll = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--ambient-caps=-all']
/** Room of its own in the sandbox, where there is one. */
const scratch = { TMPDIR: '/dev/shm' }

/**
 * Finds out which confinement works here, by trying: a write that succeeds, or a sandbox that does not start, is none. From the
 * strongest: bubblewrap, namespaces by `unshare`, another user.
 */
export async function findConfinement(
  order: readonly (keyof typeof kinds)[] = ['bwrap', 'unshare', 'user'],
): Promise<Confinement> {
  for (const kind of order) {
    const found = kinds[kind]()
    if (!found) continue
    if (await holds(found)) return found
    found.close()
  }
  return {
    sandbox: 'none',
    wrap: async (argv) => [...argv],
    environment: {},
    endsWhole: () => false,
    close: () => undefined,
  }
}

const kinds = { bwrap: byBwrap, unshare: byUnshare, user: byUser }

const endsWhole = ({ sees }: Pick<Where, 'sees'>): boolean => !sees?.includes('mounts')
const endsWholeAsRoot = (at: Pick<Where, 'sees'>): boolean => isRoot() && endsWhole(at)

/** Tries it, and fails unless the sandbox runs programs and keeps them from writing where the agent itself could. */
async function holds(confinement: Confinement): Promise<boolean> {
  try {
    const works = await confinement.wrap(
      ['/bin/sh', '-c', 'echo works; : > "/tmp/nightshift-probe-$$" && echo wrote'],
      { cwd: '/' },
    )
    const [program, ...args] = works as [string, ...string[]]
    const { stdout } = spawnSync(program, args, {
      encoding: 'utf8',
      timeout: 10_000,
      env: { PATH: search.join(':') },
      cwd: '/',
    })
    // Another user may write in /tmp: that is what makes it the weakest.
    return confinement.sandbox === 'user' ? stdout.startsWith('works') : stdout === 'works\n'
  } catch {
    return false
  }
}

/** `/proc` stays the machine's own: `ps` in a sandbox must tell the truth. A namespace of users keeps it from leading out. */
function byBwrap(): Confinement | null {
  const bwrap = find('bwrap')
  if (!bwrap) return null
  const devices = ['null', 'zero', 'full', 'random', 'urandom'].flatMap((name) => [
    '--dev-bind',
    `/dev/${name}`,
    `/dev/${name}`,
  ])
  const wrap = async (argv: readonly string[], { cwd, sees }: Where) =>
    sees?.includes('mounts')
      ? withoutRights(argv)
      : [
          ...[bwrap, '--ro-bind', '/', '/', ...devices, '--tmpfs', '/dev/shm', '--chdir', cwd],
          ...[
            '--unshare-user',
            '--unshare-pid',
            '--unshare-ipc',
            ...(sees?.includes('network') ? [] : ['--unshare-net']),
          ],
          ...['--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--'],
          ...argv,
        ]
  return { sandbox: 'bwrap', wrap, environment: scratch, endsWhole, close: () => undefined }
}

/**
 * Two processes that hold namespaces, with the network and without; each command enters one and gets its own namespace of
 * processes. Setting one up takes 50 ms, entering it 5. They end with the agent, and are made anew when the machine mounts
 * something, which would otherwise be missing in there.
 */
function byUnshare(): Confinement | null {
  const [unshare, nsenter, setpriv] = ['unshare', 'nsenter', 'setpriv'].map(find)
  if (!unshare || !nsenter || !setpriv) return null
  const held = new Map<'network' | 'nothing', { holder: Promise<ChildProcess>; mounts: string }>()

  function holderOf(kind: 'network' | 'nothing'): Promise<ChildProcess> {
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    const known = held.get(kind)
    if (known?.mounts === mounts) return known.holder
    void known?.holder.then(endLater, () => undefined)
    const holder = hold(unshare as string, kind)
    held.set(kind, { holder, mounts })
    const forget = () => {
      if (held.get(kind)?.holder === holder) held.delete(kind)
    }
    holder.then((child) => child.once('exit', forget), forget)
    return holder
  }

  return {
    sandbox: 'unshare',
    async wrap(argv, { cwd, sees }) {
      if (sees?.includes('mounts')) return withoutRights(argv)
      const kind = sees?.includes('network') ? 'network' : 'nothing'
      const { pid } = await holderOf(kind)
      const namespaces = ['--user', '--mount', '--ipc', ...(kind === 'network' ? [] : ['--net'])]
      return [
        ...[nsenter, '--target', String(pid), ...namespaces, '--preserve-credentials', `--wdns=${cwd}`, '--'],
        ...(isRoot() ? [unshare, '--pid', '--fork', '--kill-child', '--'] : []),
        ...[setpriv, ...withoutMore(), '--'],
        ...argv,
      ]
    },
    environment: scratch,
    endsWhole: endsWholeAsRoot,
    close() {
      for (const { holder } of held.values()) void holder.then(end, () => undefined)
    },
  }
}

/**
 * Who is not root loses every right of a namespace by starting a program in it, that of having processes of its own too: what such
 * a program started is looked for in /proc then.
 */
function isRoot(): boolean {
  return process.getuid?.() === 0
}

function withoutMore(): string[] {
  return isRoot() ? dropAll : ['--no-new-privs']
}

/** Somebody may be on the way in; whoever is inside stays inside. */
function endLater(child: ChildProcess): void {
  setTimeout(() => end(child), 10_000).unref()
}

function end(child: ChildProcess): void {
  child.kill('SIGKILL')
}

/**
 * Every mount is made read-only and without devices, but for the handful that every program needs. Flags that were set stay, since
 * the kernel lets nobody take them away in here.
 */
const setUp = `set -e
for device in null zero full random urandom; do mount --bind "/dev/$device" "/dev/$device"; done
mount -t tmpfs -o size=32m,mode=1777,nosuid,nodev,noexec tmpfs /dev/shm
while read -r _ _ _ _ target options _; do
  case "$target" in /dev/null|/dev/zero|/dev/full|/dev/random|/dev/urandom|/dev/shm) continue;; esac
  case "$options" in ro|ro,*) continue;; esac
  mount -o "remount,bind,nodev,ro,\${options#rw,}" "$(printf '%b' "$target")"
done < /proc/self/mountinfo
echo held
exec cat`

function hold(unshare: string, kind: 'network' | 'nothing'): Promise<ChildProcess> {
  const namespaces = ['--user', '--map-current-user', '--keep-caps', '--mount', '--ipc']
  const child = spawn(
    unshare,
    [...namespaces, ...(kind === 'network' ? [] : ['--net']), '--', '/bin/sh', '-c', setUp],
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

/** Root becomes nobody: it reads what everybody may, and writes only where everybody may. */
function byUser(): Confinement | null {
  const setpriv = find('setpriv')
  if (!setpriv || process.getuid?.() !== 0) return null
  const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups', ...dropAll]
  return {
    sandbox: 'user',
    wrap: async (argv) => [setpriv, ...nobody, '--', ...argv],
    environment: {},
    endsWhole: () => false,
    close: () => undefined,
  }
}

/** For what looks at the mounts themselves, which any sandbox would show as its own: no more rights than the files give. */
function withoutRights(argv: readonly string[]): string[] {
  const setpriv = find('setpriv')
  if (!setpriv) throw new Error('setpriv is missing')
  return [setpriv, ...withoutMore(), '--', ...argv]
}

export function find(program: string): string | null {
  for (const directory of search) {
    try {
      accessSync(`${directory}/${program}`, constants.X_OK)
      return `${directory}/${program}`
    } catch {
      // In the next one, perhaps.
    }
  }
  return null
}
