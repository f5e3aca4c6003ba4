import type { Impact } from './impact.ts'
import type { ReadSight, Survey } from './observe.ts'
import type { Redirection, Word } from './parse.ts'
import type { CallCondition } from './surroundings.ts'
import type { Unwrapped } from './unwrapped.ts'
import type { Constants } from './words.ts'
import type { InputKind } from './xargs.ts'

/** The reason of a verdict on a command: a fixed code for tests, metrics and the workflow. */
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

/** A command that may read as root. `rest`: the pipe after the command; null without a pipe. */
export type RootRead = { argv: string[]; rest: string | null }

export type CommandVerdict = {
  verdict: 'run' | 'ask' | 'refuse'
  effect: 'read' | 'write' | 'forbidden'
  code: CommandCode
  reason: string
  /** The word that decided the verdict. */
  token: string | null
  /**
   * The reason why the command does not end by itself. Separate from the verdict, because a write
   * may be endless too.
   */
  bound: EndlessReason | null
  /** A form of the same command that ends and may run; null if there is none. */
  rewrite: string | null
  needsRoot: boolean
  /**
   * The strongest effect of any command in the text; `look` if the whole text is proved to be a
   * read.
   */
  impact: Impact
  /** Environment variables that the executor must set, because the verdict depends on them. */
  environment: Record<string, string>
  /** Conditions that the executor must check just before it runs the text. */
  conditions: CallCondition[]
  /** Facts about the machine that the executor must read. */
  sees: ReadSight[]
  /**
   * Programs that read configuration which is not the administrator's. The verdict requires that
   * this configuration is switched off.
   */
  obeys: string[]
  /**
   * The part that `sudo -n` runs outside of the sandbox, as the manifest allows; null for a text
   * without such a part.
   */
  rootRead: RootRead | null
  /** Base names of all commands in the text, including nested ones, without those of `rootRead`. */
  commands: string[]
  /** The names in the text that are also in `knownNames`. */
  names: string[]
}

/** One reason why a text may not run without approval. */
export type Finding = {
  code: CommandCode
  reason: string
  token: string | null
  /** Whether the program itself refuses such arguments and does nothing. */
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

const onlyLooks: Ruling = ruled('run', 'read', { code: 'READ', reason: 'every command only reads', token: null })

/**
 * Chooses the strictest finding: a refusal comes before a request for approval. An endless read
 * comes last, because it is reported only to the model, while other findings may need a decision of
 * a person.
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
 * A budget of steps for judging one text, shared by all nested texts. Texts nest (an interpreter in
 * a here-document in a shell), some of them more than once; without a common budget, 20 nested
 * texts would cost 2^20 steps.
 */
type JudgeBudget = { left: number; spent: number }

/**
 * Steps that are allowed per character of a text. Forty layers cost forty steps a character; only a
 * text that nests itself several times needs more.
 */
export const stepsPerCharacter = 48
export const stepsForAnyText = 20_000

export function newWork(length: number): JudgeBudget {
  return { left: stepsForAnyText + stepsPerCharacter * length, spent: 0 }
}

/**
 * Takes steps from the budget. Returns false if the budget is used up; the part of the text that
 * was not read then needs approval.
 */
function takeSteps(work: JudgeBudget, steps: number): boolean {
  if (work.left < steps) {
    work.left = 0
    return false
  }
  work.left -= steps
  work.spent += steps
  return true
}

/** The finding for a text that is nested too deeply to be read. */
export const tooComplex: Finding = {
  code: 'TOO_COMPLEX',
  reason: 'nests commands in too many ways to check: write the command plainly',
  token: null,
}

/** Findings about one text. */
export type CommandAnalysis = Survey & {
  knownHosts: ReadonlySet<string>
  knownNames: ReadonlySet<string>
  /** The names in the text that are also in `knownNames`. */
  names: Set<string>
  /** Commands that may read with `sudo -n`, each as the JSON of its words. */
  rootReads: ReadonlySet<string>
  /** The one of `rootReads` with which the text begins. */
  rootRead: RootRead | null
  findings: Finding[]
  commands: Set<string>
  needsRoot: boolean
  /**
   * Every command of the text. Effects of commands are only determined if the text is not a read.
   */
  called: (readonly Word[])[]
  /** Files that the shell itself writes or reads. They decide effects too. */
  redirected: Redirection[]
  bound: EndlessReason | null
  /** The rest of the budget of steps for this text. */
  work: JudgeBudget
  secrets: readonly string[]
  constants: Constants
  /** Functions and aliases that are being expanded. */
  looked: string[]
  /** How many more expansions may be tried for arguments that are not plain text. */
  guessesLeft: number
}

/** The place of a command in the text, with what surrounds the command. */
export type ExecutionContext = {
  /**
   * False inside a substitution and similar parts of a text. There only the list of forbidden
   * commands counts, and no approval is requested.
   */
  runs: boolean
  /** Whether something outside of the command ends the command, such as a timeout. */
  bounded: boolean
  /** Whether the command's input is another command's output, or a known text. */
  piped: boolean
  /**
   * Whether the command's input is the output of the command before it in a pipe, or a text in the
   * script.
   */
  fed: boolean
  /** The kind of output of the command before it in a pipe. */
  feeds: InputKind
  input: string | null
  depth: number
  /**
   * Whether a command may read as root here. Only the first command of a text that is one pipe may.
   */
  asRoot: boolean
  mounts: Unwrapped['mounts']
  /**
   * Whether the command runs on another host or in a container, where our environment and checks do
   * not reach.
   */
  elsewhere: boolean
  /** Variables that `env` sets for the command, to switch configuration off. */
  setThere: Readonly<Record<string, string>>
  script: JudgeScript
}

/**
 * The judge of a shell text. The judge is a parameter because scripts contain commands and commands
 * contain scripts.
 */
type JudgeScript = (text: string, analysis: CommandAnalysis, context: ExecutionContext) => Termination

/**
 * Whether a command ends. If the command does not end, `text` is the command in a form that ends;
 * null if there is none, empty if the command is best left out.
 */
export type Termination = { ends: true } | { ends: false; text: string | null }

export const ends: Termination = { ends: true }
/**
 * Whether the budget has this many steps left. If it has not, a finding is added, even for a
 * command that would not run.
 */
export function isAffordable(analysis: CommandAnalysis, steps: number): boolean {
  if (takeSteps(analysis.work, steps)) return true
  if (!analysis.findings.includes(tooComplex)) analysis.findings.push(tooComplex)
  return false
}

/**
 * Variables that choose the account, region or database from existing settings. Options for the
 * same choices are allowed too.
 */
const plainChoices = /^(?:AWS_PROFILE|PGUSER|PGDATABASE|PGPORT|PGCONNECT_TIMEOUT|SYSTEMD_COLORS)$/

/** Whether a variable only changes how output looks. A value with a path may change more. */
export function isInert(name: string, value: string): boolean {
  if (/^(?:PAGER|SYSTEMD_PAGER|GIT_PAGER|AWS_PAGER|MANPAGER)$/.test(name)) return value === '' || value === 'cat'
  if (/^ETCDCTL_API$/.test(name)) return value === '2' || value === '3'
  if (plainChoices.test(name)) return /^\w[\w.-]*$/.test(value)
  if (/^AWS_(?:DEFAULT_)?REGION$/.test(name)) return /^[a-z0-9-]+$/.test(value)
  const known = /^(?:LANG|LANGUAGE|LC_[A-Z]+|TZ|COLUMNS|LINES|TERM|NO_COLOR)$/.test(name)
  return known && /^(?:[\w+-][\w.@/+:,-]*)?$/.test(value) && !value.includes('..')
}
