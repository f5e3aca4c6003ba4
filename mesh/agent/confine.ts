import { spawnSync } from 'node:child_process'
import type { AgentSight } from './capability.ts'
import type { Sandbox } from './guard.ts'
import { search } from './programs.ts'
import { byBwrap, byUnshare, byUser, type HiddenPaths, nothingHidden } from './sandboxes.ts'

/** How reads are confined on this machine. */
export type Confinement = {
  sandbox: Sandbox
  /**
   * The program with what goes before it so that it can neither write files nor see what is the
   * agent's, nor, unless it must see it, reach the network.
   */
  wrap(argv: readonly string[], at: { cwd: string; sees?: readonly AgentSight[] }): Promise<string[]>
  /** A program's own namespace of processes ends with it, so that nothing it started is left. */
  endsWhole(sees: readonly AgentSight[]): boolean
  /** Can a command in here see this as the machine has it? */
  canShow(sees: readonly AgentSight[]): boolean
  /** For programs that need room for a moment: nothing else can be written. */
  environment: Record<string, string>
  close(): void
}

/**
 * Finds out which confinement works here, by trying: a write that succeeds, a file of the agent
 * that is seen, or a sandbox that does not start, is not taken. From the strongest: bubblewrap,
 * namespaces by `unshare`, another user.
 */
export async function findConfinement(
  order: readonly (keyof typeof kinds)[] = ['bwrap', 'unshare', 'user'],
  hidden: HiddenPaths = nothingHidden,
): Promise<Confinement> {
  for (const kind of order) {
    const found = kinds[kind](hidden)
    if (!found) continue
    if (await holds(found, hidden)) return kind === 'bwrap' ? withMounts(found, hidden) : found
    found.close()
  }
  return {
    sandbox: 'none',
    wrap: async (argv) => [...argv],
    environment: {},
    endsWhole: () => false,
    canShow: () => true,
    close: () => undefined,
  }
}

/**
 * What looks at the mounts goes by namespaces, where these work as well: bubblewrap marks every
 * mount.
 */
async function withMounts(found: Confinement, hidden: HiddenPaths): Promise<Confinement> {
  const beside = byUnshare(hidden)
  if (!beside || !(await holds(beside, hidden))) {
    beside?.close()
    return found
  }
  const fitting = (sees: readonly AgentSight[] = []) => (found.canShow(sees) ? found : beside)
  return {
    ...found,
    wrap: (argv, at) => fitting(at.sees).wrap(argv, at),
    endsWhole: (sees) => fitting(sees).endsWhole(sees),
    canShow: () => true,
    close() {
      found.close()
      beside.close()
    },
  }
}

const kinds = { bwrap: byBwrap, unshare: byUnshare, user: byUser }

/** A directory that can be listed and has something in it, or a file with a byte in it. */
const probe = `echo works
: > "/tmp/nightshift-probe-$$" && echo wrote
for path; do
  if [ -d "$path" ]; then [ -z "$(ls -A "$path" 2>/dev/null)" ] || echo seen
  elif [ -n "$(head -c 1 "$path" 2>/dev/null | od -An -c)" ]; then echo seen; fi
done`

/**
 * Tries it, and fails unless the sandbox runs programs, keeps them from writing where the agent
 * itself could, and shows them nothing of what is hidden.
 */
async function holds(confinement: Confinement, { paths }: HiddenPaths): Promise<boolean> {
  try {
    const works = await confinement.wrap(['/bin/sh', '-c', probe, 'sh', ...paths], { cwd: '/' })
    const [program, ...args] = works as [string, ...string[]]
    const { stdout } = spawnSync(program, args, {
      encoding: 'utf8',
      timeout: 10_000,
      env: { PATH: search.join(':') },
      cwd: '/',
    })
    // Another user may write in /tmp: that is what makes it the weakest.
    return stdout === 'works\n' || (confinement.sandbox === 'user' && stdout === 'works\nwrote\n')
  } catch {
    return false
  }
}
