import { fileURLToPath } from 'node:url'
import { type CommandContext, type CommandVerdict, judgeArgv, judgeCommand } from '../../safety/command/judge.ts'
import { settingsDirectory } from '../../safety/command/surroundings.ts'
import { loadSql } from '../../safety/sql/inspect.ts'
import type { CapabilityContext, RunOptions, Weight } from './capability.ts'
import type { Preconditions } from './preconditions.ts'

/**
 * A device knows no other hosts and no containers by name; the control plane looks them up and
 * vouches for them with a grant.
 */
const nothingKnown = { knownHosts: new Set<string>() }

/** Where a command runs by default. */
export const defaultDirectory = '/'

/** `secrets`: what belongs to the agent itself. `canLook`: false in a container, whose files are not checked beforehand.
 * `rootReads`: what the manifest lets root look with. */
type JudgeContext = Pick<CommandContext, 'secrets' | 'canLook' | 'rootReads'>

export function hereOf({ hidden, manifest }: Pick<CapabilityContext, 'hidden' | 'manifest'>): JudgeContext {
  return { secrets: hidden, rootReads: manifest.root_reads }
}

export function argvVerdict(argv: readonly string[], cwd: string, here: JudgeContext = {}): CommandVerdict {
  return judgeArgv(argv, { ...nothingKnown, ...here, directory: cwd })
}

export function textVerdict(text: string, cwd: string, here: JudgeContext = {}): CommandVerdict {
  return judgeCommand(text, { ...nothingKnown, ...here, directory: cwd })
}

const settings = fileURLToPath(new URL('./settings', import.meta.url))

/** The settings that bound what clients ask a server lie beside this code. */
export function withSettings(environment: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [name, value.replaceAll(settingsDirectory, settings)]),
  )
}

let isSqlLoaded = false

/**
 * PostgreSQL's parser takes memory that most devices never need: it is loaded when a command first
 * names its client.
 */
export async function loadParsers(args: Record<string, unknown>): Promise<void> {
  if (
    isSqlLoaded ||
    !JSON.stringify(args)
      .replace(/['"\\]/g, '')
      .includes('psql')
  )
    return
  await loadSql()
  isSqlLoaded = true
}

/**
 * The kernel's verdict as the guard weighs it. `cwd`: where it runs on this device, when it does.
 */
export function weightOf(verdict: CommandVerdict, command: string, cwd: string | null = null): Weight {
  const { code, reason, rewrite, commands: programs, obeys } = verdict
  const said = `${code}: ${reason}`
  if (verdict.verdict === 'run')
    return {
      effect: 'read',
      reason: said,
      command,
      programs,
      obeys,
      ...(cwd !== null && { rests: toPreconditions(verdict, cwd) }),
    }
  if (verdict.verdict === 'refuse') return { effect: 'refused', reason: said, command, programs }
  // No approval helps an endless read: the deadline would kill it without an answer.
  if (code === 'UNBOUNDED')
    return { effect: 'refused', reason: rewrite ? `${said}. Instead: ${rewrite}` : said, command, programs }
  return { effect: 'write', reason: said, command, programs }
}

export function toPreconditions(
  { conditions, sees, environment, rootRead }: CommandVerdict,
  cwd: string,
): Preconditions {
  return { conditions, sees, environment, rootRead, cwd }
}

/** How a proven read is run. */
export function asRead({ environment, sees }: CommandVerdict): Pick<RunOptions, 'confine' | 'env' | 'sees'> {
  return { confine: 'read', env: withSettings(environment), sees }
}
