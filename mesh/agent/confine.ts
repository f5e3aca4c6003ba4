import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { stripText } from '../../safety/redact.ts'
import { type AgentSight, CapabilityError, type RunResult } from './capability.ts'
import type { Sandbox } from './guard.ts'
import { byUnshare } from './namespaces.ts'
import { search } from './programs.ts'
import { byBwrap, byUser, type HiddenPaths, nothingHidden } from './sandboxes.ts'

/** The confinement of reads on this machine. */
export type Confinement = {
  readonly sandbox: Sandbox
  /**
   * Returns a command line that runs a program so that it can neither write files nor see the
   * agent's files. The program can reach the network only if `sees` lists the network, or if
   * another user is the only confinement.
   */
  wrap(argv: readonly string[], at: { cwd: string; sees?: readonly AgentSight[] }): Promise<string[]>
  /** Whether all processes that a program started end with the program's process namespace. */
  endsWhole(sees: readonly AgentSight[]): boolean
  /** Whether a command in this confinement can see these parts of the machine. */
  canShow(sees: readonly AgentSight[]): boolean
  /** Whether a command in this confinement sees a wrong owner for every user but the agent's. */
  hidesOwners(sees: readonly AgentSight[]): boolean
  /** Variables for programs that need temporary space, because they can write nowhere else. */
  readonly environment: Record<string, string>
  /**
   * Matches the error messages that the confinement's programs print if they could not confine, so
   * that the command did not run.
   */
  readonly complaint?: RegExp
  /** Tests again which confinement works on this machine. */
  lookAgain?(): Promise<void>
  close(): void
}

/** `lack`: why reads are not confined, or only by another user. Null in a sandbox. */
type FoundConfinement = Confinement & { lack: string | null }

/**
 * Finds a working confinement by trying, the strongest first: bubblewrap, namespaces by `unshare`,
 * another user. Rejects a confinement if a write succeeds in it, a file of the agent is visible, or
 * no program starts.
 */
export async function findConfinement(
  order: readonly Kind[] = ['bwrap', 'unshare', 'user'],
  hidden: HiddenPaths = nothingHidden,
): Promise<FoundConfinement> {
  const lacks: string[] = []
  for (const kind of order) {
    const found = kinds[kind](hidden)
    const lack = found ? await whyNotHeld(found, hidden) : missing[kind]
    if (found && lack === null) {
      const confinement = kind === 'bwrap' ? await withMounts(found, hidden) : found
      return { ...confinement, lack: kind === 'user' ? lacks.join('; ') : null }
    }
    found?.close()
    lacks.push(`${kind}: ${lack}`)
  }
  return { ...unconfined, lack: lacks.join('; ') }
}

type Kind = keyof typeof kinds
const kinds = { bwrap: byBwrap, unshare: byUnshare, user: byUser }
const missing = {
  bwrap: 'bubblewrap is not installed',
  unshare: 'unshare, nsenter or setpriv is not installed',
  user: 'only an agent that runs as root can become another user',
}

const unconfined: Confinement = {
  sandbox: 'none',
  wrap: async (argv) => [...argv],
  environment: {},
  endsWhole: () => false,
  canShow: () => true,
  hidesOwners: () => false,
  close: () => undefined,
}

/**
 * Uses namespaces for reads of mounts if namespaces work too, because bubblewrap changes the flags
 * of every mount.
 */
async function withMounts(found: Confinement, hidden: HiddenPaths): Promise<Confinement> {
  const beside = byUnshare(hidden)
  if (!beside || (await whyNotHeld(beside, hidden)) !== null) {
    beside?.close()
    return found
  }
  const fitting = (sees: readonly AgentSight[] = []) => (found.canShow(sees) ? found : beside)
  return {
    ...found,
    wrap: (argv, at) => fitting(at.sees).wrap(argv, at),
    endsWhole: (sees) => fitting(sees).endsWhole(sees),
    canShow: () => true,
    hidesOwners: (sees) => fitting(sees).hidesOwners(sees),
    complaint: new RegExp(`${found.complaint?.source}|${beside.complaint?.source}`),
    close() {
      found.close()
      beside.close()
    },
  }
}

/**
 * A script that tests each path: whether a directory can be listed, or a file has a readable byte.
 */
const probe = `echo works
: > "/tmp/nightshift-probe-$$" && echo wrote
for path; do
  if [ -d "$path" ]; then [ -z "$(ls -A "$path" 2>/dev/null)" ] || echo seen
  elif [ -n "$(head -c 1 "$path" 2>/dev/null | od -An -c)" ]; then echo seen; fi
done`

/**
 * Tries a confinement. Returns null if it runs programs, prevents writes to files, and hides the
 * hidden paths. Otherwise returns why it is rejected.
 */
async function whyNotHeld(confinement: Confinement, { paths }: HiddenPaths): Promise<string | null> {
  try {
    const works = await confinement.wrap(['/bin/sh', '-c', probe, 'sh', ...paths], { cwd: '/' })
    const { stdout, stderr } = await tryOut(works as [string, ...string[]])
    const said = stdout.trim().split('\n')
    if (!said.includes('works')) return lastLine(stderr) || 'a program did not start in the sandbox'
    if (said.includes('seen')) return 'the sandbox shows files of the agent'
    // Accepts the write by another user, who may write in /tmp: the weakest confinement.
    return said.includes('wrote') && confinement.sandbox !== 'user' ? 'the sandbox allows a write to a file' : null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function tryOut([program, ...args]: [string, ...string[]]): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const options = { timeout: 30_000, env: { PATH: search.join(':') }, cwd: '/' }
    execFile(program, args, options, (_, stdout, stderr) => resolve({ stdout, stderr }))
  })
}

const lastLine = (text: string) => stripText(text.trim().split('\n').at(-1) ?? '', { keepNewlines: false })

/** The confinement in use, which is replaced after it is lost or when a stronger one works. */
export type KeptConfinement = FoundConfinement

const lookEveryMs = 60_000
const triedAgainMs = 3_600_000

/**
 * Keeps the working confinement. Searches again at once if a read finds it lost. While reads are
 * not confined, or only by another user, searches every hour and within a minute of a change of
 * mounts. `onChange` gets each change in words.
 */
export async function keepConfinement(
  hidden: HiddenPaths,
  onChange: (words: string) => void,
  { everyMs = lookEveryMs, order }: { everyMs?: number; order?: readonly Kind[] } = {},
): Promise<KeptConfinement> {
  let tried = { atMs: Date.now(), mounts: mountTable() }
  let found = await findConfinement(order, hidden)
  let looking: Promise<void> | null = null

  async function look(): Promise<void> {
    const before = found
    tried = { atMs: Date.now(), mounts: mountTable() }
    found = await findConfinement(order, hidden)
    // Keeps the former confinement for ten seconds, because a call may be about to enter it.
    setTimeout(() => before.close(), 10_000).unref()
    if (before.sandbox !== found.sandbox) onChange(describeConfinement(found))
  }
  function lookAgain(): Promise<void> {
    looking ??= look().finally(() => {
      looking = null
    })
    return looking
  }
  const timer = setInterval(() => {
    const isDue = Date.now() - tried.atMs >= triedAgainMs || mountTable() !== tried.mounts
    if (found.lack !== null && isDue) void lookAgain().catch(() => undefined)
  }, everyMs).unref()

  return {
    get sandbox() {
      return found.sandbox
    },
    get lack() {
      return found.lack
    },
    get environment() {
      return found.environment
    },
    get complaint() {
      return found.complaint
    },
    lookAgain,
    async wrap(argv, at) {
      try {
        return await found.wrap(argv, at)
      } catch {
        await lookAgain()
      }
      if (found.sandbox === 'none') throw lost(found.lack)
      return await found.wrap(argv, at).catch((error: Error) => {
        throw lost(error.message)
      })
    },
    endsWhole: (sees) => found.endsWhole(sees),
    canShow: (sees) => found.canShow(sees),
    hidesOwners: (sees) => found.hidesOwners(sees),
    close() {
      clearInterval(timer)
      found.close()
    },
  }
}

const lost = (why: string | null) =>
  new CapabilityError('approval_required', `The call needs a grant now: the sandbox was lost (${why}).`)

/** Describes the confinement, or the consequence of a missing confinement. */
export function describeConfinement({ sandbox, lack }: Pick<FoundConfinement, 'sandbox' | 'lack'>): string {
  if (sandbox === 'none')
    return `reads are not confined, so each read needs a grant (${lack}); the agent retries every hour, and when mounts change`
  return `reads are confined by ${sandbox}${lack === null ? '' : `, only by another user (${lack})`}`
}

function mountTable(): string {
  return readFileSync('/proc/self/mountinfo', 'utf8')
}

/**
 * Returns the error message if the sandbox was not made and the command did not run, for example
 * after an unmount. Otherwise null.
 */
export function whyNotStarted(
  { complaint }: Pick<Confinement, 'complaint'>,
  { exitCode, stdout, stderr }: Pick<RunResult, 'exitCode' | 'stdout' | 'stderr'>,
): string | null {
  return exitCode === 1 && stdout === '' && complaint?.test(stderr) ? lastLine(stderr) : null
}
