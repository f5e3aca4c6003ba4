import type { Constants } from './constants.ts'
import type { Survey } from './observe.ts'
import type { Word } from './parse.ts'
import type { Unwrapped } from './unwrapped.ts'
import type { Bound, Finding, RootRead } from './verdict.ts'
import { takeSteps, tooComplex, type Work } from './work.ts'
import type { InputKind } from './xargs.ts'

/** Everything that is found out about one text. */
export type CommandAnalysis = Survey & {
  knownHosts: ReadonlySet<string>
  knownNames: ReadonlySet<string>
  /** Commands that `sudo -n` may look with, as JSON of their words. */
  rootReads: ReadonlySet<string>
  /** The one of them that the text begins with. */
  rootRead: RootRead | null
  findings: Finding[]
  commands: Set<string>
  needsRoot: boolean
  /** Every command of the text, for what it does: weighed only where it is no look. */
  called: (readonly Word[])[]
  bound: Bound | null
  /** What judging this text may still cost. */
  work: Work
  secrets: readonly string[]
  constants: Constants
  /** Functions and aliases that are being looked into. */
  looked: string[]
  /** How many more readings of words that are not plain are tried. */
  guessesLeft: number
}

/** Where a command runs, and what surrounds it in the text. */
export type ExecutionContext = {
  /** False inside a substitution and the like: held against the hard list, and nothing else is asked. */
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
  script: JudgeScript
}

/** Judges a text for a shell: handed in, since scripts hold commands and commands hold scripts. */
type JudgeScript = (text: string, analysis: CommandAnalysis, context: ExecutionContext) => Termination

/** `ends`: nothing to do. Else the text in a form that ends; null when there is none, empty when it is best left out. */
export type Termination = { ends: true } | { ends: false; text: string | null }

export const ends: Termination = { ends: true }
/** Is there work left to look at this much? Once there is not, that is a finding, whether the command would run or not. */
export function isAffordable(analysis: CommandAnalysis, steps: number): boolean {
  if (takeSteps(analysis.work, steps)) return true
  if (!analysis.findings.includes(tooComplex)) analysis.findings.push(tooComplex)
  return false
}

/** A name in the environment that changes how text looks, and nothing else. A value that leads to a file is something else. */
export function isInert(name: string, value: string): boolean {
  const known = /^(?:LANG|LANGUAGE|LC_[A-Z]+|TZ|COLUMNS|LINES|TERM|NO_COLOR)$/.test(name)
  return known && /^(?:[\w+-][\w.@/+:,-]*)?$/.test(value) && !value.includes('..')
}
