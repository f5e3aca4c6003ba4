import { forbiddenRedirection } from './blocklist.ts'
import { hiddenCharacter } from './characters.ts'
import { noConstants } from './constants.ts'
import { feedsOf } from './feeds.ts'
import { parse, type Redirection, type Simple, type Word } from './parse.ts'
import { quote } from './quote.ts'
import { firstOfPipe, rootReadsAt, setRootReadApart } from './root-read.ts'
import { besideFinding, sightsOf } from './sights.ts'
import { type Docket, type Ending, isAffordable, isInert, judgeWords, type Place, worstOf } from './simple.ts'
import { type CommandVerdict, decide, type Finding } from './verdict.ts'
import { newWork } from './work.ts'

export type { CommandCode, CommandVerdict } from './verdict.ts'

export type CommandContext = {
  /** Host names and addresses that were looked up, in lower case. */
  knownHosts: ReadonlySet<string>
  /** Containers, pods and the like that were looked up. */
  knownNames?: ReadonlySet<string>
  /** Where it will run, when that is known. */
  directory?: string
  /** Paths that are as secret as those on the list: what belongs to the executor itself. */
  secrets?: readonly string[]
  /** False where it runs in a container or guest: its files cannot be looked at beforehand, only the environment gets there. */
  canLook?: boolean
  /** Commands that `sudo -n` may look with there, each word for word, as the device's manifest allows them: in `/` alone. */
  rootReads?: readonly (readonly string[])[]
}

/** Nobody reviews more than this; a longer script belongs into a file that somebody reads. */
const longestText = 16_384
/** More readings of words that are not plain than a text of this length has need of. */
const mostGuesses = 256

/**
 * Decides about a text that bash is to run. Pure and total: the same text and context give the same verdict, and nothing that
 * goes wrong in here makes a command run.
 */
export function judgeCommand(text: string, context: CommandContext): CommandVerdict {
  return guarded(() => judgeText(text, context, true))
}

/** How many steps judging a text takes: at most `stepsForAnyText` and `stepsPerCharacter` for each character. */
export function stepsOf(text: string, context: CommandContext): number {
  const docket = open(context, text.length)
  judgeScript(text, docket, place)
  return docket.work.spent
}

/** Decides about an argv that is executed without a shell: nothing in it expands. */
export function judgeArgv(argv: readonly string[], context: CommandContext): CommandVerdict {
  return guarded(() => {
    const docket = open(context, argv.join(' ').length)
    seeCharacters(argv.join(' '), docket)
    const words = argv.map((text): Word => ({ text, literal: true, quoting: 'bare', pattern: null }))
    if (words.length === 0 || argv[0] === '') empty(docket)
    const ending = judgeWords(words, docket, place)
    setRootReadApart(docket)
    return close(docket, argv.join(' '), rewriteOf(ending, context))
  })
}

const place: Place = {
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
  script: judgeScript,
}

function judgeText(text: string, context: CommandContext, rewriting: boolean): CommandVerdict {
  const docket = open(context, text.length)
  seeCharacters(text, docket)
  const ending = text.length > longestText ? tooLong(docket) : judgeScript(text, docket, place)
  return close(docket, text, rewriting ? rewriteOf(ending, context) : null)
}

function tooLong(docket: Docket): Ending {
  docket.findings.push({ code: 'TOO_LONG', reason: `longer than ${longestText} characters`, token: null })
  return { ends: true }
}

const nothing: ReadonlySet<string> = new Set()
const noSecrets: readonly string[] = []

function open(context: CommandContext, length: number): Docket {
  return {
    knownHosts: context.knownHosts,
    knownNames: context.knownNames ?? nothing,
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
    bound: null,
    work: newWork(length),
    directories: context.directory?.startsWith('/') ? [context.directory] : [],
    constants: noConstants(),
    looked: [],
    guessesLeft: mostGuesses,
  }
}

function seeCharacters(text: string, docket: Docket): void {
  const hidden = hiddenCharacter(text)
  if (hidden) docket.findings.push({ code: 'HIDDEN_CHARACTER', reason: `holds ${hidden}`, token: hidden })
}

function empty(docket: Docket): void {
  docket.findings.push({ code: 'EMPTY', reason: 'there is no command', token: null })
}

function close(docket: Docket, text: string, rewrite: string | null): CommandVerdict {
  const sees = sightsOf(docket.programs, text)
  const beside = besideFinding(docket.programs, sees)
  if (beside) docket.findings.push(beside)
  const ruling = decide(docket.findings)
  // Written out: every judgement ends here, and spreading an object costs as much as reading a command.
  return {
    verdict: ruling.verdict,
    effect: ruling.effect,
    code: ruling.code,
    reason: ruling.reason,
    token: ruling.token,
    bound: docket.bound,
    rewrite,
    needsRoot: docket.needsRoot,
    impact: ruling.effect === 'read' ? 'look' : worstOf(docket.called),
    environment: docket.environment,
    conditions: docket.conditions,
    sees,
    rootRead: ruling.verdict === 'run' ? docket.rootRead : null,
    obeys: obeyingOf(docket),
    commands: [...docket.commands],
  }
}

function obeyingOf({ programs }: Docket): string[] {
  const names: string[] = []
  for (const { name, obeys } of programs) if (obeys && !names.includes(name)) names.push(name)
  return names
}

/** A bounded form is only offered when it would run as it is. */
function rewriteOf(ending: Ending, context: CommandContext): string | null {
  if (ending.ends || !ending.text) return null
  return judgeText(ending.text, context, false).verdict === 'run' ? ending.text : null
}

function guarded(judge: () => CommandVerdict): CommandVerdict {
  try {
    return judge()
  } catch (error) {
    const reason = `the judge failed: ${error instanceof Error ? error.message : String(error)}`
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
    }
  }
}

/** One text for a shell, at the top or inside a wrapper. */
function judgeScript(text: string, docket: Docket, at: Place): Ending {
  if (!isAffordable(docket, text.length + 1)) return { ends: true }
  const tree = parse(text, docket.constants)
  if (!tree) {
    docket.findings.push({ code: 'UNREADABLE', reason: 'nobody can say what bash would make of it', token: null })
    return { ends: true }
  }
  const add = (finding: Finding) => {
    if (at.runs || finding.code === 'FORBIDDEN') docket.findings.push(finding)
  }
  for (const { shape, text } of tree.shapes) {
    if (shape === 'fork bomb') add({ code: 'FORBIDDEN', reason: `${text} starts itself twice`, token: text })
    else add({ code: 'SHAPE', reason: `${shape}: ${text}`, token: text })
  }
  if (tree.error) add({ code: 'SYNTAX', reason: `bash cannot read it: ${tree.error}`, token: null })
  if (tree.pipelines.length === 0 && tree.nested.length === 0)
    add({ code: 'EMPTY', reason: 'there is no command', token: null })

  const mayLookAsRoot = docket.rootReads.size > 0
  const first = at.asRoot && mayLookAsRoot ? firstOfPipe(text, tree) : null
  const changes: Change[] = []
  let ends = true
  let hopeless = false
  for (const pipeline of tree.pipelines) {
    for (const [index, simple] of pipeline.entries()) {
      const previous = pipeline[index - 1]
      const here = mayLookAsRoot ? { ...at, asRoot: first?.simple === simple } : at
      const ending = judgeSimple(simple, previous, docket, here)
      if (first?.simple === simple && docket.rootRead) {
        docket.rootRead = { ...docket.rootRead, rest: first.rest }
        setRootReadApart(docket)
      }
      if (ending.ends) continue
      ends = false
      const change = simple.start < 0 ? null : changeFor(simple, previous, ending.text)
      if (change) changes.push(change)
      else hopeless = true
    }
  }
  for (const pipeline of tree.nested) {
    for (const [index, simple] of pipeline.entries())
      judgeSimple(simple, pipeline[index - 1], docket, { ...at, runs: false })
  }
  if (ends) return { ends: true }
  return { ends: false, text: hopeless ? null : replaced(text, changes) }
}

type Change = { start: number; end: number; text: string }

function changeFor(simple: Simple, previous: Simple | undefined, text: string | null): Change | null {
  if (text === null) return null
  if (text !== '') return { start: simple.start, end: simple.end, text: written(simple, text) }
  // A pager at the end of a pipe is left out, with its bar.
  return previous ? { start: previous.end, end: simple.end, text: '' } : null
}

function written({ assignments, redirections }: Simple, text: string): string {
  return [
    ...assignments.map(({ name, value }) => `${name}=${quote(value.text)}`),
    text,
    ...redirections.map(({ source }) => source),
  ].join(' ')
}

function replaced(text: string, changes: readonly Change[]): string {
  let result = text
  for (const change of [...changes].reverse())
    result = result.slice(0, change.start) + change.text + result.slice(change.end)
  return result.trim()
}

function judgeSimple(simple: Simple, previous: Simple | undefined, docket: Docket, at: Place): Ending {
  for (const { name, value, plain } of simple.assignments) {
    if (at.runs && !(plain && value.literal && isInert(name, value.text))) {
      docket.findings.push({ code: 'ASSIGNMENT', reason: `${name} is set`, token: name })
    }
  }
  // Shells and pagers run what some variables hold, so any value is held against the hard list.
  for (const { value } of simple.assignments)
    if (simple.words.length > 0 && value.text !== '')
      judgeScript(value.text, docket, { ...at, runs: false, input: null })
  for (const redirection of simple.redirections) {
    const { guess } = redirection
    const never =
      forbiddenRedirection(redirection, docket.directories) ??
      (guess && forbiddenRedirection({ ...redirection, target: guess }, docket.directories))
    if (never) docket.findings.push({ code: 'FORBIDDEN', ...never })
    else if (at.runs && !isHarmless(redirection)) {
      const token = `${redirection.operator} ${redirection.target.text}`
      docket.findings.push({ code: 'REDIRECTION', reason: `${token} is more than /dev/null`, token })
    }
  }
  const input = simple.input ?? (previous ? printed(previous) : null)
  const piped = previous !== undefined || simple.redirections.some(({ operator }) => operator === '<') || at.piped
  const fed = previous !== undefined || simple.input !== null || simple.isFed || at.fed
  const here: Place = {
    ...at,
    input: previous ? input : (input ?? at.input),
    piped,
    fed,
    feeds: previous ? feedsOf(previous.words) : null,
  }
  for (const guess of simple.guesses) {
    if (docket.guessesLeft <= 0) {
      docket.findings.push({ code: 'SHAPE', reason: 'more readings of one text than anybody tries', token: null })
      break
    }
    docket.guessesLeft -= 1
    judgeWords(guess, docket, { ...here, runs: false, asRoot: false })
  }
  judgeDefined(simple.guesses[0] ?? simple.words, docket, here)
  return judgeWords(simple.words, docket, here)
}

/** A function or an alias of the text itself, with the words that it is called with. For the hard list. */
function judgeDefined(words: readonly Word[], docket: Docket, place: Place): void {
  const { constants, looked } = docket
  const name = words[0]?.text
  if (name === undefined || (constants.functions.size === 0 && constants.aliases.size === 0) || looked.includes(name))
    return
  const body = constants.functions.get(name)
  const alias = constants.aliases.get(name)
  if (body === undefined && alias === undefined) return
  const rest = words.slice(1).map(({ text }) => text)
  const before = constants.positional
  looked.push(name)
  if (body !== undefined) {
    constants.positional = rest
    place.script(body, docket, { ...place, runs: false, depth: place.depth + 1 })
    constants.positional = before
  } else
    place.script(`${alias} ${rest.map(quote).join(' ')}`, docket, { ...place, runs: false, depth: place.depth + 1 })
  looked.pop()
}

/** To and from /dev/null, and one stream into another. */
function isHarmless({ operator, target }: Redirection): boolean {
  if (!target.literal) return false
  if (operator === '>&' || operator === '<&') return /^(?:[0-9]|-)$/.test(target.text)
  return target.text === '/dev/null' && operator !== '<>'
}

/** What `echo` or `printf` will write, where that is plain. */
function printed({ words }: Simple): string | null {
  const [first, ...rest] = words
  if (first?.text !== 'echo' && first?.text !== 'printf') return null
  return rest
    .map(({ text }) => text)
    .filter((text, index) => index > 0 || !/^-[neE]+$/.test(text))
    .join(' ')
    .replace(/\\n/g, '\n')
}
