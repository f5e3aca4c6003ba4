import type { CommandAnalysis, Finding, RootRead } from './analysis.ts'
import type { CommandReading } from './options.ts'
import type { Simple, Tree, Word } from './parse.ts'
import { normalise } from './paths.ts'
import {
  type CallCondition,
  hasNarrowerRows,
  type PlaceRule,
  type ProgramSurroundings,
  surroundingsOf,
} from './surroundings.ts'
import type { Unwrapped } from './unwrapped.ts'

/**
 * `sudo -n` and a command that a device's manifest names word for word. The executor runs it
 * without a shell and outside of the sandbox, where no set-user-ID program works; its output goes
 * to the pipe's rest, which stays inside.
 */

/**
 * Commands that may look as root there, as JSON of their words. None may with a relative word that
 * leads elsewhere than from `/`.
 */
export function rootReadsAt(context: {
  rootReads?: readonly (readonly string[])[]
  directory?: string
}): ReadonlySet<string> {
  const isAtRoot = context.directory === undefined || context.directory === '/'
  return new Set(isAtRoot ? context.rootReads?.map((words) => JSON.stringify(words)) : [])
}

/** `sudo -n` of a command that the manifest allows word for word: judged as any other. */
export function rootReadOf(
  words: readonly Word[],
  { inner, assignments, askReason }: Unwrapped,
  rootReads: ReadonlySet<string>,
): RootRead | null {
  const [only, another] = inner
  if (rootReads.size === 0 || another || only?.kind !== 'argv' || askReason || assignments.length > 0) return null
  const before = only.before.map(({ text }) => text)
  if (before.length !== 2 || before[0] !== 'sudo' || before[1] !== '-n') return null
  if (!words.every(({ literal }) => literal)) return null
  const argv = only.words.map(({ text }) => text)
  return rootReads.has(JSON.stringify(argv)) ? { argv, rest: null } : null
}

/**
 * The first command of a text that is one pipe of simple commands, with what follows its bar; null
 * where anything else stands there.
 */
export function firstOfPipe(text: string, tree: Tree): { simple: Simple; rest: string | null } | null {
  const [pipeline, another] = tree.pipelines
  const simple = pipeline?.[0]
  if (!pipeline || !simple || another || tree.nested.length > 0 || tree.shapes.length > 0 || tree.error) return null
  const isBare = simple.assignments.length === 0 && simple.redirections.length === 0 && simple.input === null
  if (!isBare || simple.isInside || text.slice(0, simple.start).trim() !== '') return null
  const after = text.slice(simple.end).trim()
  if (pipeline.length === 1) return after === '' ? { simple, rest: null } : null
  const rest = /^\|(?![|&])\s*(\S.*)$/s.exec(after)?.[1]
  return rest === undefined ? null : { simple, rest }
}

/**
 * A look as root runs by itself, without sandbox and shell: the text's rest shares nothing with it,
 * and nobody could give it more than its words.
 */
export function setRootReadApart(analysis: CommandAnalysis): void {
  if (!analysis.rootRead) return
  if (analysis.conditions.length > 0 || Object.keys(analysis.environment).length > 0) {
    const reason = 'needs more than its words, which root does not give it'
    analysis.findings.push({ code: 'ROOT', reason, token: analysis.rootRead.argv[0] ?? null })
  }
  analysis.programs = []
  analysis.commands.clear()
}

/** A program of a text, as far as what it obeys and reaches goes. */
type ProgramObservation = { name: string; reach: ProgramSurroundings['reach']; obeys: boolean }

/** Facts of the surroundings, found while a text is judged. */
export type Survey = {
  programs: ProgramObservation[]
  conditions: CallCondition[]
  environment: Record<string, string>
  directories: string[]
  /** A `cd` went where nobody can say beforehand. */
  isLost: boolean
  /** Can the executor look at files where it runs? */
  canLook: boolean
}

type ProgramCall = { name: string; words: readonly Word[]; reading: CommandReading | null }

/** Runs on another host or in a container, without our environment; with what `env` sets there. */
type RunsWhere = { elsewhere: boolean; setThere: Readonly<Record<string, string>> }

/**
 * Notes what a program obeys: the environment that switches it off, and the conditions that the
 * executor checks. Answers why neither helps, or null.
 */
export function observe(called: ProgramCall, survey: Survey, { elsewhere, setThere }: RunsWhere): Finding | null {
  const { name } = called
  const row = rowOf(called)
  if (!row) return finding(name, 'obeys nobody knows what')
  const isExcepted =
    isOneOf(called, row.except) ||
    (called.reading?.found.some(({ name: option, at }) => at === 1 && row.obeysNothingWith?.includes(option)) ?? false)
  const obeys = row.obeys !== undefined && !isExcepted
  survey.programs.push({ name, reach: row.reach, obeys })
  const attached = row.attaches ? attach(called, survey, elsewhere) : null
  if (attached) return attached
  if (elsewhere && (obeys || hasEnvironment(called))) {
    const needed = environmentThere(called)
    const isSet = needed !== null && Object.entries(needed).every(([variable, value]) => setThere[variable] === value)
    return isSet ? null : finding(name, 'obeys what it finds there, and nobody can look at that beforehand')
  }
  if (!obeys) return null
  const asked = called.reading?.found.find((option) => row.asksWith?.includes(option.name))
  if (asked) return finding(`${name} ${asked.name}`, 'obeys what nobody can look at beforehand')
  Object.assign(survey.environment, row.switches)
  const rules = [...(row.conditions ?? []), ...ownFiles(called, row)]
  const instead = rules.length > 0 && !survey.canLook ? environmentThere(called) : null
  if (instead) {
    Object.assign(survey.environment, instead)
    return null
  }
  if (rules.length > 0 && !survey.canLook)
    return finding(name, 'obeys what it finds there, and nobody can look at that beforehand')
  const directories = rules.length > 0 ? directoriesOf(called, survey) : []
  if (rules.some(isUnknown) || (directories === null && rules.some(isOfThePlace)))
    return finding(name, 'obeys files that are not known before it runs')
  for (const rule of rules) survey.conditions.push({ ...rule, program: name, directories: directories ?? [] })
  return null
}

/**
 * Java before 21 sends SIGQUIT to any named process: the executor looks at it first. A class is
 * sought among Javas alone.
 */
function attach({ name, words }: ProgramCall, survey: Survey, elsewhere: boolean): Finding | null {
  for (const { text, literal } of words.slice(1)) {
    if (literal && !/^\d+$/.test(text)) continue
    if (!literal || elsewhere || !survey.canLook)
      return finding(name, 'ends a process that is no Java, and nobody can look at it')
    survey.conditions.push({ kind: 'java', process: text, program: name, directories: [] })
  }
  return null
}

const finding = (name: string, why: string): Finding => ({
  code: 'SURROUNDINGS',
  reason: `${name} ${why}`,
  token: name,
})

function rowOf({ name, words }: ProgramCall): ProgramSurroundings | null {
  if (hasNarrowerRows(name)) {
    for (const { text } of words.slice(1)) {
      const narrower = surroundingsOf(`${name} ${text}`)
      if (narrower) return narrower
    }
  }
  return surroundingsOf(name)
}

/** A sub-command by its place alone: as an operand the word means something else. */
function isOneOf({ words, reading }: ProgramCall, names: readonly string[] = []): boolean {
  return reading?.grammars.length === 2 && names.includes(words[reading.chosenAt]?.text ?? '')
}

/** The setting for a program to obey nothing where nobody can look; null where none helps. */
export function environmentThere(called: ProgramCall): Record<string, string> | null {
  const row = rowOf(called)
  if (!row?.there) return null
  const isAsked = called.reading?.found.some(({ name }) => row.asksWith?.includes(name)) ?? false
  if (isAsked || ownFiles(called, row).length > 0) return null
  return Object.assign({}, row.there, ...(called.reading?.grammars ?? []).map(({ environment }) => environment))
}

const hasEnvironment = ({ reading }: ProgramCall): boolean =>
  reading?.grammars.some(({ environment }) => environment !== undefined) ?? false

/** Files that its words name, if some are its settings: the others must be as trustworthy. */
function ownFiles({ reading }: ProgramCall, { obeysFilesOf = [] }: ProgramSurroundings): PlaceRule[] {
  const isNamed = obeysFilesOf.includes('operand') || reading?.found.some(({ name }) => obeysFilesOf.includes(name))
  const files = isNamed
    ? (reading?.values ?? []).flatMap(({ kind, word }) => (kind === 'file' || kind === 'compose' ? [word.text] : []))
    : []
  return files.length === 0 ? [] : [{ kind: 'root_only', files }]
}

/** A file among its words that the shell, or what runs it, makes another one of. */
const isUnknown = (rule: PlaceRule): boolean =>
  rule.kind === 'root_only' && rule.files.some((file) => !isPlainPath(file.replace(/^~\//, '/')))

function isOfThePlace(rule: PlaceRule): boolean {
  if (rule.kind === 'git_settings') return true
  return rule.kind === 'root_only' && rule.files.some((file) => !/^[~/]/.test(file))
}

/** Where it may run, with the `-C` that git takes; null when that cannot be said. */
function directoriesOf({ name, words, reading }: ProgramCall, survey: Survey): string[] | null {
  if (survey.isLost) return null
  let found = survey.directories
  if (name !== 'git') return [...found]
  for (const option of reading?.found ?? []) {
    if (option.name !== '-C') continue
    const word = words[option.valueAt ?? option.at]
    const text = option.valueAt === null ? (word?.text.slice(2) ?? '') : (word?.text ?? '')
    if (!word?.literal || !isPlainPath(text)) return null
    found = text.startsWith('/') || found.length === 0 ? [text] : found.map((directory) => `${directory}/${text}`)
  }
  return [...found]
}

/** Leads where it says: the shell makes nothing of it. */
const isPlainPath = (text: string): boolean => text !== '' && !/^[~-]|[$`*?[\\{}]/.test(text)

/** More directories than this are not followed. */
const maxDirectories = 6

/**
 * A `cd` may fail or be in a subshell: directories before it stay possible. False when there are
 * too many.
 */
export function enterDirectory(words: readonly Word[], survey: Pick<Survey, 'directories' | 'isLost'>): boolean {
  const target = words.slice(1).find(({ text }) => !/^-./.test(text))
  const isPlain = words.length === 2 && target?.literal === true && isPlainPath(target.text)
  if (!isPlain) survey.isLost = true
  const paths = target ? normalise(target.text, survey.directories) : ['/root']
  for (const path of paths) {
    if (!path.startsWith('/') || survey.directories.includes(path)) continue
    if (survey.directories.length >= maxDirectories) return false
    survey.directories.push(path)
  }
  // From a directory that nobody knows it leads to another one.
  if (!paths.some((path) => path.startsWith('/'))) survey.isLost = true
  return true
}

/** What of the machine a proven read must see as it is: without it, its answer would be wrong. */
export type ReadSight = 'network' | 'mounts'

const networkFiles = /\/(?:proc\/(?:self|thread-self|\d+)?\/?net|sys\/class\/net)\b/
const mountFiles = /\/proc\/(?:self\/|thread-self\/|\d+\/)?mount|\/etc\/mtab/

/**
 * The sandbox parts to lift for a text. Without the network's namespace `ss` finds nobody
 * listening, and every mount looks read-only.
 */
export function sightsOf(programs: readonly ProgramObservation[], text: string): ReadSight[] {
  const sights: ReadSight[] = []
  const mayName = text.includes('/proc') || text.includes('/sys/class') || text.includes('/etc/mtab')
  if (reaches(programs, 'network') || (mayName && networkFiles.test(text))) sights.push('network')
  if (reaches(programs, 'mounts') || (mayName && mountFiles.test(text))) sights.push('mounts')
  return sights
}

function reaches(programs: readonly ProgramObservation[], sight: ReadSight): boolean {
  for (const { reach } of programs) if (reach === sight) return true
  return false
}

/**
 * Lifted parts are lifted for the whole text, so nothing beside may obey something or use them:
 * beside a look at the network, a program that obeys nothing; beside one at mounts, one that only
 * reads and prints.
 */
export function besideFinding(programs: readonly ProgramObservation[], sights: readonly ReadSight[]): Finding | null {
  for (const sight of sights) {
    const other = programs.find(
      ({ reach, obeys }) => reach !== sight && (obeys || (sight === 'mounts' && reach !== 'prints')),
    )
    if (!other) continue
    const why = other.obeys ? 'obeys what it finds here' : 'does more than read and print'
    const reason = `${other.name} ${why}, and may not run beside what looks at the ${sight} of the machine: ask for each by itself`
    return { code: 'SURROUNDINGS', reason, token: other.name }
  }
  return null
}
