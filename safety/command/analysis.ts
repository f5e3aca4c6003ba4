import type { Impact } from './impact.ts'
import type { ReadSight, Survey } from './observe.ts'
import type { Redirection, Word } from './parse.ts'
import type { CallCondition } from './surroundings.ts'
import type { Unwrapped } from './unwrapped.ts'
import type { Constants } from './words.ts'
import type { InputKind } from './xargs.ts'

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
  | 'OPTION_MISSING'
  | 'SURROUNDINGS'
  | 'INTERNAL'

export type EndlessReason = 'tty_flag' | 'pager' | 'unbounded_stream' | 'interactive_repl'

/** A command that may look as root, and the rest of the pipe that reads it; null: none. */
export type RootRead = { argv: string[]; rest: string | null }

export type CommandVerdict = {
  verdict: 'run' | 'ask' | 'refuse'
  effect: 'read' | 'write' | 'forbidden'
  code: CommandCode
  reason: string
  /** The word that decided. */
  token: string | null
  /** Why it does not end by itself. Apart from the verdict: a write may be endless too. */
  bound: EndlessReason | null
  /** The same command in a form that ends and may run; null when there is none. */
  rewrite: string | null
  needsRoot: boolean
  /** What the worst command in it does; `look` where all of it is proved to look. */
  impact: Impact
  /** What the executor must set for the verdict to be true. */
  environment: Record<string, string>
  /** What the executor must make sure of just before. */
  conditions: CallCondition[]
  /** What it has to see of the machine as it is. */
  sees: ReadSight[]
  /** Programs that obey more than the administrator, switched off, under conditions or not. */
  obeys: string[]
  /**
   * The part that `sudo -n` runs outside of the sandbox, as the manifest allows; null for all other
   * texts.
   */
  rootRead: RootRead | null
  /** Base names of all commands in the text, nested ones included; without those of `rootRead`. */
  commands: string[]
  /** The known names that it rests on. */
  names: string[]
}

/** One thing that speaks against running unasked. */
export type Finding = {
  code: CommandCode
  reason: string
  token: string | null
  /** The program itself refuses such words, and does nothing. */
  isRefused?: true
}

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
 * The strictest finding decides: a refusal before a question. An endless read comes last, since
 * only the model hears of it, and a person is asked about anything else first.
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

/**
 * The cost of judging one text: a budget shared by all that it unwraps to. Texts hold texts (an
 * interpreter in a here-document in a shell), some more than once: without a common budget 20 words
 * cost 2^20 looks.
 */
type JudgeBudget = { left: number; spent: number }

/**
 * A step is one character looked at. Forty layers of a text cost forty looks a character: more
 * takes a text that holds itself several times.
 */
export const stepsPerCharacter = 48
export const stepsForAnyText = 20_000

export function newWork(length: number): JudgeBudget {
  return { left: stepsForAnyText + stepsPerCharacter * length, spent: 0 }
}

/** Takes steps; false once the budget is spent, and the unread rest has to be asked. */
function takeSteps(work: JudgeBudget, steps: number): boolean {
  if (work.left < steps) {
    work.left = 0
    return false
  }
  work.left -= steps
  work.spent += steps
  return true
}

/** What it holds cannot be looked through. */
export const tooComplex: Finding = {
  code: 'TOO_COMPLEX',
  reason: 'holds commands inside one another in more ways than can be looked through: write it plainly',
  token: null,
}

/** Everything that is found out about one text. */
export type CommandAnalysis = Survey & {
  knownHosts: ReadonlySet<string>
  knownNames: ReadonlySet<string>
  /** Those of them that the text names. */
  names: Set<string>
  /** Commands that `sudo -n` may look with, as JSON of their words. */
  rootReads: ReadonlySet<string>
  /** The one of them that the text begins with. */
  rootRead: RootRead | null
  findings: Finding[]
  commands: Set<string>
  needsRoot: boolean
  /** Every command of the text, for what it does: weighed only where it is no look. */
  called: (readonly Word[])[]
  /** What the shell writes to or reads from, for the same. */
  redirected: Redirection[]
  bound: EndlessReason | null
  /** What judging this text may still cost. */
  work: JudgeBudget
  secrets: readonly string[]
  constants: Constants
  /** Functions and aliases that are being looked into. */
  looked: string[]
  /** How many more readings of words that are not plain are tried. */
  guessesLeft: number
}

/** Where a command runs, and what surrounds it in the text. */
export type ExecutionContext = {
  /** False inside a substitution and the like: the hard list alone, and nothing is asked. */
  runs: boolean
  /** Something outside ends it. */
  bounded: boolean
  /** It reads another command's output, or its known text. */
  piped: boolean
  /** By a command before it in a pipe, or a text that stands in the script. */
  fed: boolean
  /** What kind of words the command before it prints. */
  feeds: InputKind
  input: string | null
  depth: number
  /** Where a command may look as root: the first of a text that is one pipe. */
  asRoot: boolean
  mounts: Unwrapped['mounts']
  /** On another host or in a container: neither our environment nor our looks get there. */
  elsewhere: boolean
  /** What `env` sets there, of what switches surroundings off. */
  setThere: Readonly<Record<string, string>>
  script: JudgeScript
}

/** Judges a text for a shell: handed in, since scripts hold commands and commands hold scripts. */
type JudgeScript = (text: string, analysis: CommandAnalysis, context: ExecutionContext) => Termination

/**
 * `ends`: nothing to do. Else the text in a form that ends; null when there is none, empty when it
 * is best left out.
 */
export type Termination = { ends: true } | { ends: false; text: string | null }

export const ends: Termination = { ends: true }
/**
 * Whether work is left to look at this much. If not, that is a finding, whether the command would
 * run or not.
 */
export function isAffordable(analysis: CommandAnalysis, steps: number): boolean {
  if (takeSteps(analysis.work, steps)) return true
  if (!analysis.findings.includes(tooComplex)) analysis.findings.push(tooComplex)
  return false
}

/**
 * The account, region or database that is asked, of those in its settings; an option for each is
 * taken too.
 */
const plainChoices = /^(?:AWS_PROFILE|PGUSER|PGDATABASE|PGPORT|PGCONNECT_TIMEOUT|SYSTEMD_COLORS)$/

/**
 * An environment name that changes only how text looks. A value that leads to a file is something
 * else.
 */
export function isInert(name: string, value: string): boolean {
  if (/^(?:PAGER|SYSTEMD_PAGER|GIT_PAGER|AWS_PAGER|MANPAGER)$/.test(name)) return value === '' || value === 'cat'
  if (/^ETCDCTL_API$/.test(name)) return value === '2' || value === '3'
  if (plainChoices.test(name)) return /^\w[\w.-]*$/.test(value)
  if (/^AWS_(?:DEFAULT_)?REGION$/.test(name)) return /^[a-z0-9-]+$/.test(value)
  const known = /^(?:LANG|LANGUAGE|LC_[A-Z]+|TZ|COLUMNS|LINES|TERM|NO_COLOR)$/.test(name)
  return known && /^(?:[\w+-][\w.@/+:,-]*)?$/.test(value) && !value.includes('..')
}
