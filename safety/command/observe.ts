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
 * Handles `sudo -n` with a command that a device's manifest lists word for word. The executor runs
 * the command without a shell and outside of the sandbox, where set-user-ID programs work. The
 * command's output goes to the rest of the pipe, which stays inside.
 */

/**
 * Lists the commands that may read as root there, each as the JSON of its words. Empty outside of
 * `/`, because a relative path may mean another file there.
 */
export function rootReadsAt(context: {
  rootReads?: readonly (readonly string[])[]
  directory?: string
}): ReadonlySet<string> {
  const isAtRoot = context.directory === undefined || context.directory === '/'
  return new Set(isAtRoot ? context.rootReads?.map((words) => JSON.stringify(words)) : [])
}

/** Reads `sudo -n` with an allowed command, word for word. The command is judged without `sudo`. */
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
 * Returns the first command of a text that is one pipe of simple commands, and what follows the
 * first bar; null for any other text.
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
 * Requires that a read as root depends only on its own arguments. The read runs without sandbox and
 * shell, so no other command of the text can change it.
 */
export function setRootReadApart(analysis: CommandAnalysis): void {
  if (!analysis.rootRead) return
  if (analysis.conditions.length > 0 || Object.keys(analysis.environment).length > 0) {
    const reason = 'depends on more than its words, so it needs approval as root'
    analysis.findings.push({ code: 'ROOT', reason, token: analysis.rootRead.argv[0] ?? null })
  }
  analysis.programs = []
  analysis.commands.clear()
}

/**
 * A program of a text, with the parts of the machine that it reaches. `obeys`: the program reads
 * settings that are not the administrator's.
 */
type ProgramObservation = { name: string; reach: ProgramSurroundings['reach']; obeys: boolean }

/** Facts about the surroundings of a text, collected while it is judged. */
export type Survey = {
  programs: ProgramObservation[]
  conditions: CallCondition[]
  environment: Record<string, string>
  directories: string[]
  /** Whether a `cd` goes to a place that is unknown beforehand. */
  isLost: boolean
  /** Whether the executor can check files at the place where the text runs. */
  canLook: boolean
}

type ProgramCall = { name: string; words: readonly Word[]; reading: CommandReading | null }

/**
 * Whether the program runs on another host or in a container, without our environment but with the
 * variables of `env`.
 */
type RunsWhere = { elsewhere: boolean; setThere: Readonly<Record<string, string>> }

/**
 * Records what a program obeys: the environment that switches its settings off, and the conditions
 * that the executor must check. Returns a finding if neither of them helps; otherwise null.
 */
export function observe(called: ProgramCall, survey: Survey, { elsewhere, setThere }: RunsWhere): Finding | null {
  const { name } = called
  const row = rowOf(called)
  if (!row) return finding(name, 'may read unknown settings')
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
    return isSet ? null : finding(name, 'reads settings there that nobody can check first')
  }
  if (!obeys) return null
  const asked = called.reading?.found.find((option) => row.asksWith?.includes(option.name))
  if (asked) return finding(`${name} ${asked.name}`, 'reads settings that nobody can check first')
  Object.assign(survey.environment, row.switches)
  const rules = [...(row.conditions ?? []), ...ownFiles(called, row)]
  const instead = rules.length > 0 && !survey.canLook ? environmentThere(called) : null
  if (instead) {
    Object.assign(survey.environment, instead)
    return null
  }
  if (rules.length > 0 && !survey.canLook) return finding(name, 'reads settings there that nobody can check first')
  const directories = rules.length > 0 ? directoriesOf(called, survey) : []
  if (rules.some(isUnknown) || (directories === null && rules.some(isOfThePlace)))
    return finding(name, 'reads settings from files that are not known before it runs')
  for (const rule of rules) survey.conditions.push({ ...rule, program: name, directories: directories ?? [] })
  return null
}

/**
 * Checks a program that attaches to a process: Java before 21 sends SIGQUIT to any named process.
 * The executor must check first that the process runs Java. A class is only searched for among Java
 * processes.
 */
function attach({ name, words }: ProgramCall, survey: Survey, elsewhere: boolean): Finding | null {
  for (const { text, literal } of words.slice(1)) {
    if (literal && !/^\d+$/.test(text)) continue
    if (!literal || elsewhere || !survey.canLook)
      return finding(name, 'ends a process that is not Java, and that cannot be checked first')
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

/**
 * Whether a command line calls one of these sub-commands. Checks the position, because the same
 * word as an operand means something else.
 */
function isOneOf({ words, reading }: ProgramCall, names: readonly string[] = []): boolean {
  return reading?.grammars.length === 2 && names.includes(words[reading.chosenAt]?.text ?? '')
}

/**
 * Returns the environment with which a program obeys nothing on a machine whose files are not
 * checked; null if there is none.
 */
export function environmentThere(called: ProgramCall): Record<string, string> | null {
  const row = rowOf(called)
  if (!row?.there) return null
  const isAsked = called.reading?.found.some(({ name }) => row.asksWith?.includes(name)) ?? false
  if (isAsked || ownFiles(called, row).length > 0) return null
  return Object.assign({}, row.there, ...(called.reading?.grammars ?? []).map(({ environment }) => environment))
}

const hasEnvironment = ({ reading }: ProgramCall): boolean =>
  reading?.grammars.some(({ environment }) => environment !== undefined) ?? false

/**
 * Lists files among a program's arguments that are settings for it. Only root may be able to write
 * these files.
 */
function ownFiles({ reading }: ProgramCall, { obeysFilesOf = [] }: ProgramSurroundings): PlaceRule[] {
  const isNamed = obeysFilesOf.includes('operand') || reading?.found.some(({ name }) => obeysFilesOf.includes(name))
  const files = isNamed
    ? (reading?.values ?? []).flatMap(({ kind, word }) => (kind === 'file' || kind === 'compose' ? [word.text] : []))
    : []
  return files.length === 0 ? [] : [{ kind: 'root_only', files }]
}

/** Whether a file in a rule may be expanded to another file. */
const isUnknown = (rule: PlaceRule): boolean =>
  rule.kind === 'root_only' && rule.files.some((file) => !isPlainPath(file.replace(/^~\//, '/')))

function isOfThePlace(rule: PlaceRule): boolean {
  if (rule.kind === 'git_settings') return true
  return rule.kind === 'root_only' && rule.files.some((file) => !/^[~/]/.test(file))
}

/**
 * Lists the directories in which the program may run, with git's `-C`; null if they are unknown.
 */
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

/** Whether a path stays as written, because the shell expands nothing in it. */
const isPlainPath = (text: string): boolean => text !== '' && !/^[~-]|[$`*?[\\{}]/.test(text)

/** Most directories that are followed through changes of directory. */
const maxDirectories = 6

/**
 * Follows `cd`. `cd` may fail or run in a subshell, so earlier directories stay possible. Returns
 * false if there are too many directories.
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
  // Marks the directory as unknown if a relative path starts from an unknown directory.
  if (!paths.some((path) => path.startsWith('/'))) survey.isLost = true
  return true
}

/**
 * A part of the machine that a proven read must see outside of the sandbox, because its answer
 * would be wrong otherwise.
 */
export type ReadSight = 'network' | 'mounts'

const networkFiles = /\/(?:proc\/(?:self|thread-self|\d+)?\/?net|sys\/class\/net)\b/
const mountFiles = /\/proc\/(?:self\/|thread-self\/|\d+\/)?mount|\/etc\/mtab/

/**
 * Lists the parts of the sandbox to lift for a text. In a separate network namespace `ss` finds no
 * listener, and in the sandbox every mount looks read-only.
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
 * Checks the other programs of a text, because a part of the sandbox is lifted for the whole text.
 * Beside a read of the network, only programs are allowed that obey no settings; beside a read of
 * mounts, only programs that read and print.
 */
export function besideFinding(programs: readonly ProgramObservation[], sights: readonly ReadSight[]): Finding | null {
  for (const sight of sights) {
    const other = programs.find(
      ({ reach, obeys }) => reach !== sight && (obeys || (sight === 'mounts' && reach !== 'prints')),
    )
    if (!other) continue
    const why = other.obeys ? 'reads settings that it finds here' : 'does more than read and print'
    const reason = `${other.name} ${why}, so it may not run beside a read of the machine's ${sight}: send each by itself`
    return { code: 'SURROUNDINGS', reason, token: other.name }
  }
  return null
}
