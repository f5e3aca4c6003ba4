import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { stripText } from '../../safety/redact.ts'
import { type AgentSight, CapabilityError, type RunResult } from './capability.ts'
import type { Sandbox } from './guard.ts'
import { byUnshare } from './namespaces.ts'
import { search } from './programs.ts'
import { byBwrap, byUser, type HiddenPaths, nothingHidden } from './sandboxes.ts'

/** How reads are confined on this machine. */
export type Confinement = {
  readonly sandbox: Sandbox
  /**
   * The program with what goes before it so that it can neither write files nor see what is the
   * agent's, nor, unless it must see it, reach the network.
   */
  wrap(argv: readonly string[], at: { cwd: string; sees?: readonly AgentSight[] }): Promise<string[]>
  /** A program's own namespace of processes ends with it, so that nothing it started is left. */
  endsWhole(sees: readonly AgentSight[]): boolean
  /** Can a command in here see this as the machine has it? */
  canShow(sees: readonly AgentSight[]): boolean
  /** Is every user but the agent's own and root shown as another one in here? */
  hidesOwners(sees: readonly AgentSight[]): boolean
  /** For programs that need room for a moment: nothing else can be written. */
  readonly environment: Record<string, string>
  /** How its own programs complain when it is not made, and nothing ran in it. */
  readonly complaint?: RegExp
  /** Finds out again what works here. */
  lookAgain?(): Promise<void>
  close(): void
}

/** `lack`: why reads are not confined, or only as another user; null where they are. */
type FoundConfinement = Confinement & { lack: string | null }

/**
 * Finds out which confinement works here, by trying: a write that succeeds, a file of the agent
 * that is seen, or a sandbox that does not start, is not taken. From the strongest: bubblewrap,
 * namespaces by `unshare`, another user.
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
  user: 'only an agent of root can become another user',
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
 * What looks at the mounts goes by namespaces, where these work as well: bubblewrap marks every
 * mount.
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

/** A directory that can be listed and has something in it, or a file with a byte in it. */
const probe = `echo works
: > "/tmp/nightshift-probe-$$" && echo wrote
for path; do
  if [ -d "$path" ]; then [ -z "$(ls -A "$path" 2>/dev/null)" ] || echo seen
  elif [ -n "$(head -c 1 "$path" 2>/dev/null | od -An -c)" ]; then echo seen; fi
done`

/**
 * Tries it: why it is not taken, unless it runs programs, keeps them from writing where the agent
 * itself could, and shows them nothing of what is hidden. Null where it holds.
 */
async function whyNotHeld(confinement: Confinement, { paths }: HiddenPaths): Promise<string | null> {
  try {
    const works = await confinement.wrap(['/bin/sh', '-c', probe, 'sh', ...paths], { cwd: '/' })
    const { stdout, stderr } = await tryOut(works as [string, ...string[]])
    const said = stdout.trim().split('\n')
    if (!said.includes('works')) return lastLine(stderr) || 'a program did not start in it'
    if (said.includes('seen')) return 'it shows what is the agent’s own'
    // Another user may write in /tmp: that is what makes it the weakest.
    return said.includes('wrote') && confinement.sandbox !== 'user' ? 'a file can be written in it' : null
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

/** A confinement that is sought again where it is lost, and where a stronger one may have come. */
export type KeptConfinement = FoundConfinement

const lookEveryMs = 60_000
const triedAgainMs = 3_600_000

/**
 * Keeps the working confinement. A failed or missing one is sought again: at once where a read
 * needs it, every hour, and within a minute of a change of mounts. `onChange` hears each change in
 * words.
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
    // A call about to enter the former one still may.
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
  new CapabilityError('approval_required', `It needs a grant just now: its sandbox was lost (${why}).`)

/** How reads are confined, and what follows where they are not. */
export function describeConfinement({ sandbox, lack }: Pick<FoundConfinement, 'sandbox' | 'lack'>): string {
  if (sandbox === 'none')
    return `reads are not confined, so each needs a grant (${lack}); this is tried again every hour, and when mounts change`
  return `reads are confined by ${sandbox}${lack === null ? '' : `, as another user alone (${lack})`}`
}

function mountTable(): string {
  return readFileSync('/proc/self/mountinfo', 'utf8')
}

/** Its complaint, where no sandbox was made and nothing ran: a mount or its holder went. */
export function whyNotStarted(
  { complaint }: Pick<Confinement, 'complaint'>,
  { exitCode, stdout, stderr }: Pick<RunResult, 'exitCode' | 'stdout' | 'stderr'>,
): string | null {
  return exitCode === 1 && stdout === '' && complaint?.test(stderr) ? lastLine(stderr) : null
}
