import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import type { Sight } from './capability.ts'
import type { Confinement } from './confine.ts'
import { type Hidden, shownAt } from './hidden.ts'
import { find, isRoot, search, withoutMore } from './rights.ts'

/**
 * Processes that hold namespaces, one for each thing that a command may have to see; each command enters one and gets its own namespace
 * of processes. Setting one up takes 50 ms, entering it 5. They end with the agent, and are replaced when the machine mounts
 * something, which would otherwise be missing in there.
 */
export function byUnshare(hidden: Hidden): Confinement | null {
  const [unshare, nsenter, setpriv] = ['unshare', 'nsenter', 'setpriv'].map(find)
  if (!unshare || !nsenter || !setpriv) return null
  const held = new Map<string, { holder: Promise<ChildProcess>; mounts: string }>()

  function holderOf(sees: readonly Sight[]): Promise<ChildProcess> {
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
        ...[nsenter, '--target', String(pid), ...namespaces, '--preserve-credentials', `--wdns=${cwd}`, '--'],
        ...(isRoot() ? [unshare, '--pid', '--fork', '--kill-child', '--'] : []),
        ...[setpriv, ...withoutMore(), '--'],
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

/** Somebody may be on the way in; who is inside stays inside. */
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
  sees: readonly Sight[],
  { hidden, mounts }: { hidden: Hidden; mounts: string },
): Promise<ChildProcess> {
  const shown = sees.includes('rehearsals') && hidden.rehearsals !== null && existsSync(hidden.rehearsals)
  // The deepest first, so that none is covered before its turn; the flags of the machine's own mounts stay where they are looked at.
  const covered = hidden.paths
    .flatMap((path) => shownAt(path, mounts))
    .sort((a, b) => b.length - a.length)
    .filter((path, at, all) => all.indexOf(path) === at && statSync(path, { throwIfNoEntry: false }))
  const script = `set -e${sees.includes('mounts') ? '' : readOnly}${cover}\necho held\nexec cat`
  const namespaces = ['--user', '--map-current-user', '--keep-caps', '--mount', '--ipc']
  const child = spawn(
    unshare,
    [
      ...[...namespaces, ...(sees.includes('network') ? [] : ['--net']), '--'],
      ...['/bin/sh', '-c', script, 'sh', shown ? (hidden.rehearsals as string) : '', ...covered],
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
