import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import type { Confinement } from './confine.ts'
import { readMounts, shownAt } from './mounts.ts'
import { dropAll, find, isRoot } from './programs.ts'

/**
 * Builds a confinement with bubblewrap. `/proc` is the machine's, because `ps` in a sandbox must
 * list all processes. A user namespace prevents a way out through `/proc`.
 */
export function byBwrap(hidden: HiddenPaths): Confinement | null {
  const bwrap = find('bwrap')
  if (!bwrap) return null
  const devices = ['null', 'zero', 'full', 'random', 'urandom'].flatMap((name) => [
    '--dev-bind',
    `/dev/${name}`,
    `/dev/${name}`,
  ])
  // Limits the file system in memory, which could otherwise take half of the memory, and which no
  // process limit counts. bubblewrap before 0.7 lacks the option; `run.ts` limits files in any
  // case.
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
    // Bubblewrap marks each mount that it makes as nosuid, so the machine's table of mounts is not
    // visible inside.
    canShow: (sees) => !sees.includes('mounts'),
    hidesOwners: () => true,
    complaint: /^bwrap: (?!execvp)/,
    close: () => undefined,
  }
}

/** Builds options that cover hidden paths with empty directories and files. */
function covers({ paths, rehearsals }: HiddenPaths, withRehearsals: boolean): string[] {
  const mounts = readMounts(readFileSync('/proc/self/mountinfo', 'utf8'))
  const covered = [...new Set(paths.flatMap((path) => shownAt(path, mounts)))].sort((a, b) => b.length - a.length)
  const shown = withRehearsals && rehearsals !== null && existsSync(rehearsals) ? rehearsals : null
  return covered.flatMap((path) => {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return ['--ro-bind', '/dev/null', path]
    const inside = shown?.startsWith(`${path}/`) ? ['--ro-bind', shown, shown] : []
    return ['--tmpfs', path, ...inside, '--remount-ro', path]
  })
}

/**
 * Builds a confinement with another user. Root becomes the user `nobody`, which reads and writes
 * only files that every user may, and has the network. The modes of the agent's files deny access
 * to `nobody`. Another user does not restrain a program that obeys configuration, so no such
 * program runs here without approval (`guard.ts`).
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
    hidesOwners: () => false,
    complaint: /^setpriv: (?!failed to execute)/,
    close: () => undefined,
  }
}

/** Paths that only the agent uses: its state with journal and nonces, and key files elsewhere. */
export type HiddenPaths = {
  paths: readonly string[]
  /** The directory of temporary copies, below one of these paths. A check has to see it. */
  rehearsals: string | null
}

export const nothingHidden: HiddenPaths = { paths: [], rehearsals: null }
