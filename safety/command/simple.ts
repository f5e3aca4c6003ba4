import { forbidden } from './blocklist.ts'
import { type Unbounded, unboundedByGrammar, unboundedByName } from './bounds.ts'
import { carriedCommands } from './carried.ts'
import { foreignCharacter } from './characters.ts'
import { codeCommands } from './code.ts'
import type { Constants } from './constants.ts'
import { grammars } from './grammars/index.ts'
import { hostOf, isKnownHost } from './hosts.ts'
import { type Impact, impactOf, worse } from './impact.ts'
import { enter, observe, type Surveyed } from './observe.ts'
import { compile, read } from './options.ts'
import type { Word } from './parse.ts'
import { quote } from './quote.ts'
import { rootReadOf } from './root-read.ts'
import { shell } from './shell.ts'
import { unwrap } from './unwrap.ts'
import type { Inner, Unwrapped } from './unwrapped.ts'
import { valueFindings } from './values.ts'
import type { Bound, CommandCode, Finding, RootRead } from './verdict.ts'
import { takeSteps, tooComplex, type Work } from './work.ts'
import type { Fed } from './xargs.ts'

/** Everything that is found out about one text. */
export type Docket = Surveyed & {
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

/** Where a command stands. */
export type Place = {
  /** False inside a substitution and the like: held against the hard list, and nothing else is asked. */
  runs: boolean
  /** Something outside ends it. */
  bounded: boolean
  /** It reads another command's output, or its known text. */
  piped: boolean
  /** By a command before it in a pipe, or a text that stands in the script. */
  fed: boolean
  /** What kind of words the command before it prints. */
  feeds: Fed
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
type JudgeScript = (text: string, docket: Docket, place: Place) => Ending

/** `ends`: nothing to do. Else the text in a form that ends; null when there is none, empty when it is best left out. */
export type Ending = { ends: true } | { ends: false; text: string | null }

const ends: Ending = { ends: true }
const programs = compile({ ...shell, ...grammars })
const trusted = /^(?:\/usr(?:\/local)?)?\/s?bin\/[^/]+$/

export function judgeWords(words: readonly Word[], docket: Docket, place: Place): Ending {
  const first = words[0]
  if (!first || !isAffordable(docket, lengthOf(words))) return ends
  const name = baseOf(first)
  docket.commands.add(name)
  docket.called.push(words)
  const add = (code: CommandCode, word: Word | null, why: string) => {
    if (place.runs || code === 'FORBIDDEN' || code === 'FOREIGN_CHARACTER') {
      docket.findings.push({ code, reason: word ? `${word.text} ${why}` : why, token: word?.text ?? null })
    }
  }
  const foreign = foreignCharacter(first.text)
  if (foreign && first.literal) add('FOREIGN_CHARACTER', first, `is not a command's name: ${foreign}`)
  const never = forbidden(outside(words, place.mounts), docket.directories)
  if (never) docket.findings.push({ code: 'FORBIDDEN', ...never })
  for (const text of codeCommands(name, words)) place.script(text, docket, { ...place, runs: false })
  for (const text of carriedCommands(name, words, place.input))
    place.script(text, docket, { ...place, runs: false, input: null })
  if (!first.literal || first.quoting === 'split') add('COMMAND_WORD', first, 'is not a plain command word')
  else if (first.text.includes('/') && !trusted.test(first.text))
    add('UNKNOWN_COMMAND', first, 'is a program of an unusual place')

  if (name === 'cd' || name === 'pushd') {
    if (!enter(words, docket)) add('ARGUMENT', first, 'changes the directory more often than is followed')
  }

  const unwrapped = unwrap(name, words, place.input, place.piped, place.feeds)
  if (unwrapped) return judgeWrapper(words, unwrapped, docket, place, add)
  if (place.runs) return judgeProgram(name, words, docket, place, add)
  return ends
}

/** What the worst of these commands does. */
export function worstOf(called: readonly (readonly Word[])[]): Impact {
  let worst: Impact = 'look'
  for (const words of called) {
    const name = baseOf(words[0]!)
    const texts = words.map(({ text }) => text)
    worst = worse(worst, impactOf(name, texts, programs.has(name)))
  }
  return worst
}

/** Is there work left to look at this much? Once there is not, that is a finding, whether the command would run or not. */
export function isAffordable(docket: Docket, steps: number): boolean {
  if (takeSteps(docket.work, steps)) return true
  if (!docket.findings.includes(tooComplex)) docket.findings.push(tooComplex)
  return false
}

function lengthOf(words: readonly Word[]): number {
  let length = 1
  for (const { text } of words) length += text.length + 1
  return length
}

const baseOf = ({ text }: Word): string => text.slice(text.lastIndexOf('/') + 1)

type Add = (code: CommandCode, word: Word | null, why: string) => void

/** Paths of a container as the host knows them. */
function outside(words: readonly Word[], mounts: Unwrapped['mounts']): readonly Word[] {
  const mount = mounts.find(({ inside }) => words.some(({ text }) => text === inside || text.startsWith(`${inside}/`)))
  if (!mount) return words
  return words.map((word) =>
    word.text === mount.inside || word.text.startsWith(`${mount.inside}/`)
      ? { ...word, text: `${mount.outside}/${word.text.slice(mount.inside.length)}` }
      : word,
  )
}

function judgeProgram(name: string, words: readonly Word[], docket: Docket, place: Place, add: Add): Ending {
  const program = programs.get(name)
  if (!program) {
    const unbounded = unboundedByName(name, words, place.piped)
    if (!unbounded) add('UNKNOWN_COMMAND', words[0]!, 'is not a program that is known to only look')
    return unbounded ? endless(unbounded, docket, place, add) : ends
  }
  const reading = read(words, program, place.fed ? place.input : undefined)
  const unbounded = unboundedByGrammar(name, reading, words, place.piped)
  if (reading.problem && !unbounded) {
    const { word, why } = reading.problem
    if (word) add('ARGUMENT', word, why)
    else add('ARGUMENT', words[0]!, `does more than look as it is called: ${why}`)
  }
  const { directories, knownHosts, secrets } = docket
  for (const finding of valueFindings(reading, { name, directories, knownHosts, secrets })) {
    docket.findings.push(finding)
    if (finding.code === 'UNBOUNDED') docket.bound ??= 'unbounded_stream'
  }
  for (const { environment } of reading.grammars) Object.assign(docket.environment, environment)
  if (!reading.problem) {
    const found = observe({ name, words, reading }, docket, place.elsewhere)
    if (found) docket.findings.push(found)
  }
  return unbounded ? endless(unbounded, docket, place, add) : ends
}

function endless({ bound, words }: Unbounded, docket: Docket, place: Place, add: Add): Ending {
  if (place.bounded && bound === 'unbounded_stream') return ends
  docket.bound ??= bound
  add('UNBOUNDED', null, `does not end by itself (${bound})`)
  return { ends: false, text: words?.map(quote).join(' ') ?? null }
}

/** A name in the environment that changes how text looks, and nothing else. A value that leads to a file is something else. */
export function isInert(name: string, value: string): boolean {
  const known = /^(?:LANG|LANGUAGE|LC_[A-Z]+|TZ|COLUMNS|LINES|TERM|NO_COLOR)$/.test(name)
  return known && /^(?:[\w+-][\w.@/+:,-]*)?$/.test(value) && !value.includes('..')
}

function judgeWrapper(words: readonly Word[], found: Unwrapped, docket: Docket, place: Place, add: Add): Ending {
  const name = words[0]!
  if (found.root) {
    docket.needsRoot = true
    docket.rootRead = place.asRoot && place.runs ? rootReadOf(words, found, docket.rootReads) : null
    if (!docket.rootRead) add('ROOT', name, "runs with another user's rights")
  } else if (found.why && !found.interactive) add('WRAPPER', found.why.word, found.why.text)
  for (const assignment of found.assignments) {
    if (!isInert(assignment.name, assignment.value)) add('ASSIGNMENT', name, `sets ${assignment.name}`)
  }
  for (const word of found.hosts) {
    if (word.text.startsWith('root@')) {
      docket.needsRoot = true
      add('ROOT', word, 'is root there')
    }
    const host = word.literal ? hostOf(word.text) : null
    if (!host || !isKnownHost(host, docket.knownHosts)) add('EXFILTRATION', word, 'is a host that was not looked up')
  }
  for (const word of found.names) {
    if (!word.literal || !docket.knownNames.has(word.text))
      add('UNKNOWN_NAME', word, 'is a name that was not looked up')
  }
  const shown = found.inner.flatMap((inner) => (inner.kind === 'script' ? words : inner.before))
  const unknown = shown.find((word) => !word.literal)
  if (unknown) add('ARGUMENT', unknown, 'is not known before it runs')
  for (const guess of found.guesses)
    judgeWords(guess, docket, { ...place, runs: false, asRoot: false, mounts: found.mounts })

  const isElsewhere = found.hosts.length > 0 || found.names.length > 0
  if (isElsewhere && place.runs) {
    const why = observe({ name: baseOf(name), words, reading: null }, docket, place.elsewhere)
    if (why) docket.findings.push(why)
  }

  const inside: Place = {
    ...place,
    // As root it has another home and none of our environment.
    elsewhere: place.elsewhere || isElsewhere || dropsEnvironment(words) || found.root,
    asRoot: false,
    bounded: place.bounded || found.bounds,
    mounts: [...place.mounts, ...found.mounts],
    depth: place.depth + 1,
    input: found.readsInput || found.judged ? null : place.input,
    feeds: null,
    fed: place.fed && !found.judged,
  }
  const endings = found.inner.map((inner) => ({ inner, ending: judgeInner(inner, docket, inside) }))
  return endingOf(words, found, endings, { docket, place, add })
}

/** What was set for a program inside does not get there. */
const dropsEnvironment = (words: readonly Word[]): boolean =>
  baseOf(words[0]!) === 'env' && words.some(({ text }) => /^-(?:[a-z0]*i[a-z0]*|-ignore-environment)?$/.test(text))

/** Nobody nests this many layers on purpose, and the stack is finite. */
const deepest = 40

function judgeInner(inner: Inner, docket: Docket, place: Place): Ending {
  if (place.depth > deepest) {
    docket.findings.push({
      code: 'TOO_LONG',
      reason: 'more commands inside one another than anybody can review',
      token: null,
    })
    return ends
  }
  if (inner.kind === 'argv') return judgeWords(inner.words, docket, place)
  if (inner.after.length === 0) return place.script(inner.text, docket, place)
  const { positional, zero } = docket.constants
  docket.constants.zero = inner.after[0]!.text
  docket.constants.positional = inner.after.slice(1).map(({ text }) => text)
  const ending = place.script(inner.text, docket, place)
  Object.assign(docket.constants, { positional, zero })
  return ending
}

type Judged = { inner: Inner; ending: Ending }

function endingOf(
  words: readonly Word[],
  found: Unwrapped,
  judged: Judged[],
  { docket, place, add }: { docket: Docket; place: Place; add: Add },
): Ending {
  const terminal = found.tty.some((at) => /^(?:-[a-z]*t[a-z]*|--tty)$/.test(words[at]!.text))
  if (terminal) {
    docket.bound ??= 'tty_flag'
    add('UNBOUNDED', null, 'waits for a terminal')
  }
  if (found.interactive) return endless({ bound: 'interactive_repl', words: null }, docket, place, add)
  const repeats = found.endless && !place.bounded
  if (repeats) {
    docket.bound ??= 'unbounded_stream'
    add('UNBOUNDED', words[0]!, 'does not end by itself')
  }
  if (!terminal && !repeats && judged.every(({ ending }) => ending.ends)) return ends
  const only = judged.length === 1 ? judged[0]! : null
  if (!only || (!only.ending.ends && !only.ending.text)) return { ends: false, text: null }
  const text = only.ending.ends ? textOf(only.inner) : only.ending.text!
  if (found.endless) return { ends: false, text }
  const before = only.inner.before.filter(
    (word, at) => !(terminal && found.tty.includes(at) && isOnlyTerminal(word.text)),
  )
  const inner = only.inner.kind === 'argv' ? text : quote(text)
  return {
    ends: false,
    text: [...before.map(({ text }) => quote(text)), inner, ...only.inner.after.map(({ text }) => quote(text))].join(
      ' ',
    ),
  }
}

const isOnlyTerminal = (option: string): boolean => /^(?:-[it]+|--tty|--interactive|--stdin)$/.test(option)

const textOf = (inner: Inner): string =>
  inner.kind === 'script' ? inner.text : inner.words.map(({ text }) => quote(text)).join(' ')
