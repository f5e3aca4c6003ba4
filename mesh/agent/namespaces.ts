import { type ChildProcess, type ChildProcessByStdio, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { promisify } from 'node:util'
import { stripText } from '../../safety/redact.ts'
import { type AgentSight, errnoOf } from './capability.ts'
import type { Confinement } from './confine.ts'
import { type Mount, readMounts, shownAt, writableIn } from './mounts.ts'
import { find, isRoot, search, statusField, withoutMore } from './programs.ts'
import type { HiddenPaths } from './sandboxes.ts'

/**
 * Builds a confinement with namespaces, held by one process for each set of visible parts. Each
 * command enters a holder's namespaces, and as root gets a process namespace too. Creating
 * namespaces takes 50 ms, entering them 5. The holders end with the agent. A holder is replaced if
 * the machine's mounts change, or if a directory opens that kept a mount out of reach.
 */
export function byUnshare(hidden: HiddenPaths): Confinement | null {
  const [unshare, nsenter, setpriv] = ['unshare', 'nsenter', 'setpriv'].map(find)
  if (!unshare || !nsenter || !setpriv) return null
  const held = new Map<string, { holder: Promise<Holder>; mountinfo: string; closed: ClosedDirectory[] }>()
  const tools: Tools = { unshare, nsenter, setpriv, mapsAll: mayMapUsers() }

  function holderOf(sees: readonly AgentSight[]): Promise<Holder> {
    const mountinfo = readFileSync('/proc/self/mountinfo', 'utf8')
    const kind = [...sees].sort().join()
    const known = held.get(kind)
    if (known?.mountinfo === mountinfo && known.closed.every(isAsItWas)) return known.holder
    void known?.holder.then(
      ({ child }) => endLater(child),
      () => undefined,
    )
    const holder = hold(tools, sees, hidden, readMounts(mountinfo))
    const kept = { holder, mountinfo, closed: [] as ClosedDirectory[] }
    held.set(kind, kept)
    const forget = () => {
      if (held.get(kind) === kept) held.delete(kind)
    }
    holder.then(({ child, closed }) => {
      kept.closed = closed
      child.once('exit', forget)
    }, forget)
    return holder
  }

  return {
    sandbox: 'unshare',
    wrap: async (argv, { cwd, sees = [] }) => enterable(tools, (await holderOf(sees)).pid, sees, cwd)(argv),
    // Points TMPDIR to a file system in memory that exists only in the sandbox.
    environment: { TMPDIR: '/dev/shm' },
    endsWhole: isRoot,
    canShow: () => true,
    hidesOwners: () => !tools.mapsAll,
    complaint: /^(?:nsenter|unshare|setpriv): (?!failed to execute)/,
    close() {
      for (const { holder } of held.values())
        void holder.then(
          ({ child }) => end(child),
          () => undefined,
        )
    },
  }
}

type Tools = { unshare: string; nsenter: string; setpriv: string; mapsAll: boolean }

/**
 * Whether the agent can map all users in a namespace, which only root with both rights can.
 * Otherwise all other users appear as user 65534.
 */
function mayMapUsers(): boolean {
  const setIds = 0b1100_0000n
  const effective = statusField(readFileSync('/proc/self/status', 'utf8'), 'CapEff')
  return isRoot() && (BigInt(`0x${effective ?? 0}`) & setIds) === setIds
}

/** Returns a function that puts the command for entering the namespaces before a command line. */
function enterable({ unshare, nsenter, setpriv }: Tools, pid: number, sees: readonly AgentSight[], cwd = '/') {
  return (argv: readonly string[]): [string, ...string[]] => [
    nsenter,
    ...['--target', String(pid), '--user', '--mount', '--ipc', ...(sees.includes('network') ? [] : ['--net'])],
    ...['--preserve-credentials', `--wdns=${cwd}`, '--'],
    ...(isRoot() ? [unshare, '--pid', '--fork', '--kill-child', '--'] : []),
    ...[setpriv, ...withoutMore(), '--', ...argv],
  ]
}

/**
 * Ends a holder after ten seconds, because a program may be about to enter its namespaces. A
 * program that has entered them continues.
 */
function endLater(child: ChildProcess): void {
  setTimeout(() => end(child), 10_000).unref()
}

function end(child: ChildProcess): void {
  child.kill('SIGKILL')
}

const devices = ['null', 'zero', 'full', 'random', 'urandom']

/**
 * Makes every reachable mount read-only and without devices, except the few devices that every
 * program needs. Keeps the mounts' other flags, because the kernel lets no process here remove
 * them. `hold` then reads the result from the kernel, because a mount may disappear meanwhile.
 */
const readOnly = `
for device in ${devices.join(' ')}; do mount --bind "/dev/$device" "/dev/$device"; done
mount -t tmpfs -o size=32m,mode=1777,nosuid,nodev,noexec tmpfs /dev/shm
while read -r _ _ _ _ target options _; do
  case "$target" in ${devices.map((name) => `/dev/${name}`).join('|')}|/dev/shm) continue;; esac
  case "$options" in ro|ro,*) continue;; esac
  case "$target" in *\\\\*) target=$(printf '%b' "$target");; esac
  [ -e "\${target%/*}/." ] || continue
  mount -o "remount,bind,nodev,ro,\${options#rw,}" "$target" || :
done < /proc/self/mountinfo`

/** Covers hidden paths. Arguments: the directory of temporary copies or nothing, then each path. */
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

/** `closed`: directories that keep commands inside from mounts that are not read-only. */
type Holder = { child: ChildProcess; pid: number; closed: ClosedDirectory[] }

/** Milliseconds for the start of a holder, which hangs if a network file system hangs. */
const heldWithinMs = 60_000

/**
 * Makes and checks a holder. Throws the reason if a command in its namespaces could write, or see a
 * hidden path.
 */
async function hold(
  tools: Tools,
  sees: readonly AgentSight[],
  hidden: HiddenPaths,
  mounts: readonly Mount[],
): Promise<Holder> {
  // Sorts the deepest paths first, so that each path is still reachable when its cover is made.
  const covered = hidden.paths
    .flatMap((path) => shownAt(path, mounts))
    .sort((a, b) => b.length - a.length)
    .filter((path, at, all) => all.indexOf(path) === at && statSync(path, { throwIfNoEntry: false }))
  const child = begin(tools, sees, hidden, covered)
  let complaints = ''
  let isLate = false
  child.stderr.on('data', (chunk: Buffer) => {
    complaints = (complaints + chunk).slice(-8_000)
  })
  child.stdin.on('error', () => undefined)
  const broken = new Promise<never>((_, reject) => child.once('error', reject))
  const over = once(child, 'close').catch(() => undefined)
  const timer = setTimeout(() => {
    isLate = true
    end(child)
  }, heldWithinMs)
  const says = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const hear = async (word: string) => {
    const { value } = await Promise.race([says.next(), broken])
    if (value !== word) throw new Error('the sandbox was not built')
  }
  try {
    await hear('new')
    const pid = child.pid as number
    if (tools.mapsAll) mapAllUsers(pid)
    child.stdin.write('go\n')
    await hear('held')
    // Keeps the machine's mounts with their flags for commands that read the mounts.
    const left = sees.includes('mounts') ? [] : leftWritable(pid, covered)
    const closed = left.length > 0 ? await directoriesBefore(left, enterable(tools, pid, sees)) : []
    // Lets the agent end without waiting for the holder, which ends when its input from the agent
    // closes. Before this line, the agent had to notice the end of the holder.
    for (const handle of [child, child.stdin, child.stdout, child.stderr]) (handle as { unref(): void }).unref()
    return { child, pid, closed }
  } catch (error) {
    end(child)
    await over
    throw new Error(
      isLate ? 'the sandbox was not built in time: does a mount hang?' : explain(error as Error, complaints),
    )
  } finally {
    clearTimeout(timer)
  }
}

/** Adds the error message of `mount`, if `mount` printed one. */
function explain({ message }: Error, complaints: string): string {
  const lines = complaints.trim().split('\n')
  const about = lines.findLast((line) => message.includes(/^mount: (\/.*?): /.exec(line)?.[1] ?? '\n'))
  const said = about ?? (message.startsWith('it was') ? lines.at(-1) : '')
  return [message, stripText(said ?? '', { keepNewlines: false }).slice(0, 300)].filter(Boolean).join(': ')
}

function begin(
  { unshare, mapsAll }: Tools,
  sees: readonly AgentSight[],
  { rehearsals }: HiddenPaths,
  covered: readonly string[],
): ChildProcessByStdio<Writable, Readable, Readable> {
  const shown = sees.includes('rehearsals') && rehearsals !== null && existsSync(rehearsals) ? rehearsals : ''
  const script = `set -e; echo new; read -r _${sees.includes('mounts') ? '' : readOnly}${cover}\necho held\nexec cat`
  const namespaces = ['--user', ...(mapsAll ? [] : ['--map-current-user']), '--keep-caps', '--mount', '--ipc']
  const network = sees.includes('network') ? [] : ['--net']
  return spawn(unshare, [...namespaces, ...network, '--', '/bin/sh', '-c', script, 'sh', shown, ...covered], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: search.join(':') },
    cwd: '/',
    detached: true,
  })
}

/** Maps each user to itself, which only root may do. */
function mapAllUsers(pid: number): void {
  for (const kind of ['uid_map', 'gid_map']) {
    const lines = readFileSync(`/proc/self/${kind}`, 'utf8').trim().split('\n')
    const same = lines.map((line) => line.trim().split(/\s+/)).map(([first, , count]) => `${first} ${first} ${count}`)
    const file = openSync(`/proc/${pid}/${kind}`, 'r+')
    try {
      writeSync(file, same.join('\n'))
    } finally {
      closeSync(file)
    }
  }
}

/** Lists the mounts in a holder that could be written, as the kernel reports them. */
function leftWritable(pid: number, covered: readonly string[]): Mount[] {
  const files = covered.filter((path) => !statSync(path, { throwIfNoEntry: false })?.isDirectory())
  const own = new Set([...devices.map((name) => `/dev/${name}`), '/dev/shm', ...files])
  return writableIn(readMounts(readFileSync(`/proc/${pid}/mountinfo`, 'utf8'))).filter(({ target }) => !own.has(target))
}

/** A directory that the agent's user may not enter, and its state when it was checked. */
type ClosedDirectory = { path: string; state: string }

const isAsItWas = ({ path, state }: ClosedDirectory): boolean => stateOf(path) === state

function stateOf(path: string): string {
  try {
    const { dev, ino, mode, uid, gid, ctimeNs } = statSync(path, { bigint: true })
    return [dev, ino, mode, uid, gid, ctimeNs].join()
  } catch (error) {
    return errnoOf(error) ?? 'unknown'
  }
}

/**
 * A script that prints for each path the length of its first closed directory, or 0 if all are
 * open.
 */
const firstClosed = `
for path; do
  rest=\${path#/} at= length=0
  while [ -n "$rest" ]; do
    if ! [ -e "$at/." ]; then length=\${#at}; break; fi
    at=$at/\${rest%%/*}
    case "$rest" in */*) rest=\${rest#*/};; *) rest=;; esac
  done
  echo "$length"
done`

/**
 * Finds the directories that keep commands from reaching these mounts, with a command that has the
 * rights of a read. Throws if a mount is reachable.
 */
async function directoriesBefore(
  mounts: readonly Mount[],
  inside: (argv: readonly string[]) => [string, ...string[]],
): Promise<ClosedDirectory[]> {
  const targets = mounts.map(({ target }) => target)
  // Reads the states before the check, so that a directory that opens meanwhile has another.
  const states = new Map([...new Set(targets.flatMap(aboveOf))].map((path) => [path, stateOf(path)]))
  const [program, ...words] = inside(['/bin/sh', '-c', firstClosed, 'sh', ...targets])
  const { stdout } = await promisify(execFile)(program, words, { env: { PATH: search.join(':') }, timeout: 30_000 })
  const lengths = stdout.split('\n').map(Number)
  const directories = targets.map((target, at) => Buffer.from(target).subarray(0, lengths[at]).toString())
  // Counts a mount as open if its name is not UTF-8, because the name cannot be tested.
  const open = mounts.filter(({ target }, at) => directories[at] === '' || target.includes('\ufffd'))
  if (open.length > 0) {
    const names = open.slice(0, 3).map(({ target, type }) => `${target} (${type})`)
    throw new Error(`${names.join(', ')} cannot be made read-only`)
  }
  return [...new Set(directories)].map((path) => ({ path, state: states.get(path) ?? '' }))
}

function aboveOf(path: string): string[] {
  const above = dirname(path)
  return above === path ? [] : [above, ...aboveOf(above)]
}
