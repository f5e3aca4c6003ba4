import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import type { Confinement } from './confine.ts'
import { readMounts, shownAt } from './mounts.ts'
import { dropAll, find, isRoot } from './programs.ts'

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
    hidesOwners: () => true,
    complaint: /^bwrap: (?!execvp)/,
    close: () => undefined,
  }
}

/** Empty directories and files over what is hidden in there. */
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
    hidesOwners: () => false,
    complaint: /^setpriv: (?!failed to execute)/,
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
