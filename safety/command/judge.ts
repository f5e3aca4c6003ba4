import type { CommandField } from '../../domain/tool.ts'
import {
  type CommandAnalysis,
  type CommandVerdict,
  decide,
  type ExecutionContext,
  newWork,
  type Termination,
} from './analysis.ts'
import { besideFinding, rootReadsAt, setRootReadApart, sightsOf } from './observe.ts'
import type { Word } from './parse.ts'
import { judgeScript } from './script.ts'
import { findWorstImpact, judgeWords } from './simple.ts'
import { hiddenCharacter, noConstants } from './words.ts'

export type { CommandVerdict } from './analysis.ts'

export type CommandContext = {
  /** Host names and addresses that this attempt looked up, in lower case. */
  knownHosts: ReadonlySet<string>
  /**
   * Names of containers, pods and the like that were looked up where the command will run, written
   * as in `known-names.ts`.
   */
  knownNames?: ReadonlySet<string>
  /** The directory in which the command will run, if it is known. */
  directory?: string
  /** Paths of the executor itself, which are as secret as the paths in `secret-paths.ts`. */
  secrets?: readonly string[]
  /**
   * False in a container or guest: files there cannot be checked before the run, and only
   * environment variables reach the command.
   */
  canLook?: boolean
  /**
   * Commands that may read with `sudo -n`, word for word as the manifest allows, and only in `/`.
   */
  rootReads?: readonly (readonly string[])[]
}

/**
 * Most characters of a text that can be reviewed. A longer script belongs in a file that somebody
 * reads.
 */
const maxTextCharacters = 16_384
/**
 * Most expansions that are tried for words that are not plain. No text of this length needs more.
 */
const maxGuesses = 256

/**
 * Judges a text for bash. Pure and total: the same text and context give the same verdict, and an
 * error in this code never lets a command run.
 */
export function judgeCommand(text: string, context: CommandContext): CommandVerdict {
  return guarded(() => judgeText(text, context, true))
}

/**
 * Counts the steps of judging a text: at most `stepsForAnyText`, and `stepsPerCharacter` for each
 * character.
 */
export function countSteps(text: string, context: CommandContext): number {
  const analysis = open(context, text.length)
  judgeScript(text, analysis, topLevel)
  return analysis.work.spent
}

/** Judges an argv that is executed without a shell, so that nothing in it expands. */
export function judgeArgv(argv: readonly string[], context: CommandContext): CommandVerdict {
  return guarded(() => {
    const analysis = open(context, argv.join(' ').length)
    seeCharacters(argv.join(' '), analysis)
    const words = argv.map((text): Word => ({ text, literal: true, quoting: 'bare', pattern: null }))
    if (words.length === 0 || argv[0] === '') empty(analysis)
    const termination = judgeWords(words, analysis, topLevel)
    setRootReadApart(analysis)
    return close(analysis, argv.join(' '), offerRewrite(termination, context))
  })
}

/** Judges the command of a call as it would run at its place. */
export function judgeField(
  { field, form, directory }: CommandField,
  args: Readonly<Record<string, unknown>>,
  known: Pick<CommandContext, 'knownHosts' | 'knownNames' | 'rootReads'>,
): CommandVerdict {
  const where = directory && { directory: String(args[directory.field] ?? directory.otherwise) }
  const context = { ...known, ...where }
  const value = args[field]
  if (form === 'bash') return judgeCommand(String(value), context)
  return judgeArgv(Array.isArray(value) ? value.map(String) : [], context)
}

const topLevel: ExecutionContext = {
  runs: true,
  bounded: false,
  piped: false,
  fed: false,
  feeds: null,
  input: null,
  depth: 0,
  asRoot: true,
  mounts: [],
  elsewhere: false,
  setThere: {},
  script: judgeScript,
}

function judgeText(text: string, context: CommandContext, rewriting: boolean): CommandVerdict {
  const analysis = open(context, text.length)
  seeCharacters(text, analysis)
  const termination = text.length > maxTextCharacters ? tooLong(analysis) : judgeScript(text, analysis, topLevel)
  return close(analysis, text, rewriting ? offerRewrite(termination, context) : null)
}

function tooLong(analysis: CommandAnalysis): Termination {
  analysis.findings.push({ code: 'TOO_LONG', reason: `longer than ${maxTextCharacters} characters`, token: null })
  return { ends: true }
}

const nothing: ReadonlySet<string> = new Set()
const noSecrets: readonly string[] = []

function open(context: CommandContext, length: number): CommandAnalysis {
  return {
    knownHosts: context.knownHosts,
    knownNames: context.knownNames ?? nothing,
    names: new Set(),
    rootReads: context.rootReads ? rootReadsAt(context) : nothing,
    rootRead: null,
    findings: [],
    commands: new Set(),
    environment: {},
    conditions: [],
    programs: [],
    isLost: false,
    secrets: context.secrets ?? noSecrets,
    canLook: context.canLook ?? true,
    needsRoot: false,
    called: [],
    redirected: [],
    bound: null,
    work: newWork(length),
    directories: context.directory?.startsWith('/') ? [context.directory] : [],
    constants: noConstants(),
    looked: [],
    guessesLeft: maxGuesses,
  }
}

function seeCharacters(text: string, analysis: CommandAnalysis): void {
  const hidden = hiddenCharacter(text)
  if (hidden) analysis.findings.push({ code: 'HIDDEN_CHARACTER', reason: `holds ${hidden}`, token: hidden })
}

function empty(analysis: CommandAnalysis): void {
  analysis.findings.push({ code: 'EMPTY', reason: 'there is no command', token: null })
}

function close(analysis: CommandAnalysis, text: string, rewrite: string | null): CommandVerdict {
  const sees = sightsOf(analysis.programs, text)
  const beside = besideFinding(analysis.programs, sees)
  if (beside) analysis.findings.push(beside)
  const ruling = decide(analysis.findings)
  // Writes each field by name, because every judgement ends here and spreading an object is slower.
  return {
    verdict: ruling.verdict,
    effect: ruling.effect,
    code: ruling.code,
    reason: ruling.reason,
    token: ruling.token,
    bound: analysis.bound,
    rewrite,
    needsRoot: analysis.needsRoot,
    impact: ruling.effect === 'read' ? 'look' : findWorstImpact(analysis),
    environment: analysis.environment,
    conditions: analysis.conditions,
    sees,
    rootRead: ruling.verdict === 'run' ? analysis.rootRead : null,
    obeys: listObeying(analysis),
    commands: [...analysis.commands],
    names: [...analysis.names],
  }
}

function listObeying({ programs }: CommandAnalysis): string[] {
  const names: string[] = []
  for (const { name, obeys } of programs) if (obeys && !names.includes(name)) names.push(name)
  return names
}

/** Offers a form of the command that ends, but only if that form may run without approval. */
function offerRewrite(termination: Termination, context: CommandContext): string | null {
  if (termination.ends || !termination.text) return null
  return judgeText(termination.text, context, false).verdict === 'run' ? termination.text : null
}

function guarded(judge: () => CommandVerdict): CommandVerdict {
  try {
    return judge()
  } catch (error) {
    const reason = `the check of the command failed: ${error instanceof Error ? error.message : String(error)}`
    return {
      verdict: 'ask',
      effect: 'write',
      code: 'INTERNAL',
      reason,
      token: null,
      bound: null,
      rewrite: null,
      needsRoot: false,
      impact: 'unknown',
      environment: {},
      conditions: [],
      sees: [],
      obeys: [],
      rootRead: null,
      commands: [],
      names: [],
    }
  }
}
