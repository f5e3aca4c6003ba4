import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import type { Confinement } from './confine.ts'
import { type Hidden, shownAt } from './hidden.ts'
import { find } from './rights.ts'

/** `/proc` stays the machine's own: `ps` in a sandbox must tell the truth. A namespace of users keeps it from leading out. */
export function byBwrap(hidden: Hidden): Confinement | null {
  const bwrap = find('bwrap')
  if (!bwrap) return null
  const devices = ['null', 'zero', 'full', 'random', 'urandom'].flatMap((name) => [
    '--dev-bind',
    `/dev/${name}`,
    `/dev/${name}`,
  ])
  // Half of the memory else, which no limit of a process counts. Older ones than 0.7 cannot; a file is small even there (`run.ts`).
  const { stdout } = spawnSync(bwrap, ['--help'], { encoding: 'utf8', timeout: 5_000 })
  const small = stdout?.includes('--size ') ? ['--size', String(32 << 20)] : []
  return {
    sandbox: 'bwrap',
    async wrap(argv, { cwd, sees = [] }) {
      return [
        ...[bwrap, '--ro-bind', '/', '/', ...devices, ...small, '--tmpfs', '/dev/shm'],
        ...covers(hidden, sees.includes('rehearsals')),
        ...['--chdir', cwd, '--unshare-user', '--unshare-pid', '--unshare-ipc'],
        ...(sees.includes('network') ? [] : ['--unshare-net']),
        ...['--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--'],
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

/** Empty directories and files over what nobody may see in there. */
function covers({ paths, rehearsals }: Hidden, withRehearsals: boolean): string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
  const covered = [...new Set(paths.flatMap((path) => shownAt(path, mounts)))].sort((a, b) => b.length - a.length)
  const shown = withRehearsals && rehearsals !== null && existsSync(rehearsals) ? rehearsals : null
  return covered.flatMap((path) => {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return ['--ro-bind', '/dev/null', path]
    const inside = shown?.startsWith(`${path}/`) ? ['--ro-bind', shown, shown] : []
    return ['--tmpfs', path, ...inside, '--remount-ro', path]
  })
}
