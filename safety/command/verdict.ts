import type { Impact } from './impact.ts'
import type { Sight } from './observe.ts'
import type { Condition } from './surroundings.ts'

/** Why a command was judged as it was: a closed word for tests, metrics and the workflow. */
export type CommandCode =
  | 'READ'
  | 'EMPTY'
  | 'HIDDEN_CHARACTER'
  | 'FOREIGN_CHARACTER'
  | 'TOO_LONG'
  | 'TOO_COMPLEX'
  | 'FORBIDDEN'
  | 'UNREADABLE'
  | 'SYNTAX'
  | 'SHAPE'
  | 'COMMAND_WORD'
  | 'UNKNOWN_COMMAND'
  | 'ARGUMENT'
  | 'SENSITIVE_PATH'
  | 'EXFILTRATION'
  | 'UNKNOWN_NAME'
  | 'LANGUAGE'
  | 'REDIRECTION'
  | 'ASSIGNMENT'
  | 'WRAPPER'
  | 'ROOT'
  | 'UNBOUNDED'
  | 'SURROUNDINGS'
  | 'INTERNAL'

export type Bound = 'tty_flag' | 'pager' | 'unbounded_stream' | 'interactive_repl'

/** A command that may look as root, and the rest of the pipe that reads what it prints; null where there is no rest. */
export type RootRead = { argv: string[]; rest: string | null }

export type CommandVerdict = {
  verdict: 'run' | 'ask' | 'refuse'
  effect: 'read' | 'write' | 'forbidden'
  code: CommandCode
  reason: string
  /** The word that decided. */
  token: string | null
  /** Why it does not end by itself. Apart from the verdict: a write may be endless too. */
  bound: Bound | null
  /** The same command in a form that ends and may run; null when there is none. */
  rewrite: string | null
  needsRoot: boolean
  /** What the worst command in it does; `look` where all of it is proved to look. */
  impact: Impact
  /** What the executor must set for the verdict to be true. */
  environment: Record<string, string>
  /** What the executor must make sure of just before. */
  conditions: Condition[]
  /** What it has to see of the machine as it is. */
  sees: Sight[]
  /** Programs that obey more than the administrator, switched off, under conditions or not. */
  obeys: string[]
  /** What `sudo -n` runs of it outside of the sandbox, as the manifest allows; null for all other texts. */
  rootRead: RootRead | null
  /** Base names of all commands in the text, nested ones included; without those of `rootRead`. */
  commands: string[]
}

/** One thing that speaks against running unasked. */
export type Finding = { code: CommandCode; reason: string; token: string | null }

const refusing: ReadonlySet<CommandCode> = new Set([
  'HIDDEN_CHARACTER',
  'FOREIGN_CHARACTER',
  'TOO_LONG',
  'UNREADABLE',
  'FORBIDDEN',
])
const reading: ReadonlySet<CommandCode> = new Set([
  'SENSITIVE_PATH',
  'EXFILTRATION',
  'UNKNOWN_NAME',
  'UNBOUNDED',
  'SURROUNDINGS',
])

type Ruling = Pick<CommandVerdict, 'verdict' | 'effect' | 'code' | 'reason' | 'token'>

const onlyLooks: Ruling = ruled('run', 'read', { code: 'READ', reason: 'every command only looks', token: null })

/**
 * The strictest finding decides: one that refuses before one that asks. That a read does not end comes last, since it is only
 * told to the model, and a person must be asked about anything else first.
 */
export function decide(findings: readonly Finding[]): Ruling {
  if (findings.length === 0) return onlyLooks
  const refused = findings.find(({ code }) => refusing.has(code))
  if (refused) return ruled('refuse', 'forbidden', refused)
  const decisive = findings.find(({ code }) => code !== 'UNBOUNDED') ?? findings[0]!
  const effect = findings.every(({ code }) => reading.has(code)) ? 'read' : 'write'
  return ruled('ask', effect, decisive)
}

function ruled(verdict: Ruling['verdict'], effect: Ruling['effect'], { code, reason, token }: Finding): Ruling {
  return { verdict, effect, code, reason, token }
}
