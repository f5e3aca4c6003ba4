import { basename, resolve } from 'node:path'
import { parse, type Simple, type Tree } from '../../safety/command/parse.ts'
import { quote } from '../../safety/command/unwrapped.ts'
import { redact } from '../../safety/redact.ts'
import { type CapabilityContext, CapabilityError, type CapabilityOutcome } from './capability.ts'
import { dryRunOf, dryRuns } from './dry-runs.ts'
import { argvVerdict, asRead, toPreconditions } from './guard.ts'
import { formatProcess, processFacts, whyNeverSignalled } from './process-facts.ts'
import { homeOf } from './programs.ts'
import { fileFacts, patiently, programFacts, treeFacts, whyNotLooked } from './rehearsal.ts'
import { type RehearsalReport, reportOutcome, restsOnLines } from './rehearsal-report.ts'

/** The most commands, files and lines of output that a card shows. */
const maxCommands = 8
const maxFiles = 12
const maxLines = 25
/** Milliseconds after which no further command is tried, because the run waits for the card. */
const budgetMs = 8_000

/** A command with a known program and known arguments, and the files to which its output goes. */
type PlannedCommand = { words: string[]; targets: string[] }

/** Makes a dry run of a program with its arguments. */
export function rehearseArgv(
  argv: readonly string[],
  cwd: string,
  context: CapabilityContext,
): Promise<CapabilityOutcome> {
  return rehearse([{ words: [...argv], targets: [] }], [], cwd, context)
}

/** Makes a dry run of a text for bash. Tries each command whose arguments are plain text. */
export function rehearseText(text: string, cwd: string, context: CapabilityContext): Promise<CapabilityOutcome> {
  const tree = parse(text)
  if (!tree || tree.error !== null)
    return rehearse([], ['The text cannot be parsed, so no command was tried.'], cwd, context)
  if (renames(tree))
    return rehearse([], ['The text changes which program a name means, so no command was tried.'], cwd, context)
  const untried: string[] = []
  if (tree.nested.length > 0 || tree.pipelines.flat().some(({ isInside }) => isInside))
    untried.push('Commands in loops, groups, functions and substitutions were not tried.')
  const plain = tree.pipelines
    .flat()
    .filter((each) => !each.isInside && (each.words.length > 0 || each.redirections.length > 0))
  // Does not try relative names after a change of directory, because their directory is unknown.
  const moves = plain.some(({ words }) =>
    /^(?:cd|pushd|popd|source|\.|eval|exec|set|shopt)$/.test(words[0]?.text ?? ''),
  )
  const planned = plain.flatMap((each) => {
    const found = plannedOf(each)
    if (typeof found === 'string') untried.push(found)
    else if (moves && isRelative(found))
      untried.push(notTried(found, 'the text may change the directory of the command'))
    else return [found]
    return []
  })
  if (planned.length > maxCommands)
    untried.push(`Of ${planned.length} commands, the first ${maxCommands} were checked.`)
  return rehearse(planned.slice(0, maxCommands), untried, cwd, context)
}

/** Whether a function, an alias or another PATH changes the meaning of program names. */
const renames = ({ shapes, pipelines, nested }: Tree): boolean =>
  shapes.some(({ shape }) => shape === 'function') ||
  [...pipelines, ...nested]
    .flat()
    .some(
      ({ words, assignments }) =>
        (words.length === 0 && assignments.length > 0) ||
        /^(?:alias|export|declare|typeset|hash|enable|readonly)$/.test(words[0]?.text ?? ''),
    )

function plannedOf({ words, redirections, assignments }: Simple): PlannedCommand | string {
  const unknown = words.find((word) => !word.literal)
  const shown = quote(words[0]?.text ?? '').slice(0, 80)
  if (assignments.length > 0) return `${shown} was not tried: it uses variables of the text.`
  if (redirections.some(({ operator, target }) => operator.includes('>') && !target.literal))
    return `${shown} was not tried: the target of its output is known only when it runs.`
  if (unknown) return `${shown} was not tried: the value of ${unknown.text.slice(0, 80)} is known only when it runs.`
  const targets = redirections
    .filter(
      ({ operator, target }) =>
        operator.includes('>') &&
        target.literal &&
        !/^(?:\d+|-|\/dev\/(?:null|stdout|stderr|tty|full|zero))$/.test(target.text),
    )
    .map(({ target }) => target.text)
  return { words: words.map(({ text }) => text), targets }
}

const isRelative = ({ words, targets }: PlannedCommand): boolean =>
  [...words.slice(1), ...targets].some((word) => !word.startsWith('/') && !word.startsWith('-'))

const notTried = ({ words }: PlannedCommand, why: string): string =>
  `${quote(words[0] ?? '').slice(0, 80)} was not tried: ${why}.`

/** Builtins of bash that have no lasting effect. */
const builtins = new Set(
  'cd pushd popd echo printf true false test [ unset read wait exit : umask ulimit shift return local declare type'.split(
    ' ',
  ),
)

async function rehearse(
  planned: readonly PlannedCommand[],
  untried: readonly string[],
  cwd: string,
  context: CapabilityContext,
): Promise<CapabilityOutcome> {
  const told = [`runs as ${userOf()} in ${cwd}`]
  const rests = [cwd]
  const programs = [...new Set(planned.flatMap(({ words }) => words[0] ?? []))].filter((word) => !builtins.has(word))
  const files = [...new Set(planned.flatMap((each) => namedFiles(each, cwd)))].slice(0, maxFiles)
  for (const fact of [...(await programFacts(programs, cwd, context)), ...(await fileFacts(files, context))]) {
    told.push(fact.told)
    rests.push(fact.rests)
  }
  const left = [...untried]
  // Whether the dry run is complete. A part that was not tried below makes it incomplete.
  let isWhole = untried.length === 0
  let tried = false
  const untilMs = performance.now() + budgetMs
  for (const each of planned) {
    for (const target of each.targets) left.push(`Output to ${target.slice(0, 200)} was not tried.`)
    isWhole &&= each.targets.length === 0
    if (each.words.length === 0) continue
    const found =
      performance.now() < untilMs ? await tryOrSay(each, cwd, context) : notTried(each, 'the time limit was reached')
    if (typeof found === 'string') {
      left.push(found)
      isWhole = false
    } else {
      told.push(...found.told)
      left.push(...found.untried)
      rests.push(found.rests)
      tried ||= found.tried
      isWhole &&= found.tried || found.untried.length === 0
    }
  }
  if (planned.length > 1) left.push('Each command was checked alone, on the state before the first command.')
  return reportOutcome({ told, untried: left, rests: rests.join('\n'), tried: tried && isWhole }, { unmet: null })
}

function userOf(): string {
  const home = homeOf()
  return `user ${process.getuid?.() ?? '?'} (home ${home})`
}

/**
 * Whether a path contains `..`. Behind a symbolic link, `..` leads to another place than the text
 * says.
 */
const climbs = (word: string): boolean => word.split('/').includes('..')

const takesFiles = new Set(
  'rm rmdir unlink shred mv cp ln install chmod chown chgrp truncate tee sed touch mkdir gzip gunzip xz bzip2 cat'.split(
    ' ',
  ),
)

function namedFiles({ words: [first = '', ...rest], targets }: PlannedCommand, cwd: string): string[] {
  const isFile = (word: string) =>
    /^(?:\/|\.\.?\/)/.test(word) || (takesFiles.has(basename(first)) && !word.startsWith('-') && /[./]/.test(word))
  const values = rest.flatMap((word) => /^(?:-{1,2}[\w-]+|[a-z]+)=((?:\/|\.\.?\/).*)$/.exec(word)?.[1] ?? word)
  const named = values.filter((word) => isFile(word) && word.length < 1_000 && !climbs(word) && !/[\n\0]/.test(word))
  return [...named, ...targets].map((word) => resolve(cwd, word))
}

/** Tries one command, or returns why not. A failed try does not prevent the approval request. */
async function tryOrSay(
  planned: PlannedCommand,
  cwd: string,
  context: CapabilityContext,
): Promise<RehearsalReport | string> {
  try {
    return await tryOne(planned, cwd, context)
  } catch (error) {
    if (context.signal.aborted) throw error
    return notTried(
      planned,
      error instanceof CapabilityError ? error.message.replace(/\.$/, '') : 'the command could not be checked',
    )
  }
}

/** Tries one command if its effect can be seen beforehand. Otherwise returns the reason. */
async function tryOne(
  planned: PlannedCommand,
  cwd: string,
  context: CapabilityContext,
): Promise<RehearsalReport | string> {
  const { words } = planned
  const name = basename(words[0]!)
  const verdict = argvVerdict(words, cwd, { secrets: context.hidden })
  if (verdict.effect === 'read' || builtins.has(name)) return { told: [], untried: [], rests: '', tried: false }
  if (name === 'rm' || name === 'rmdir' || name === 'unlink' || name === 'shred')
    return tryRemoval(planned, cwd, context)
  if (name === 'kill') return tryKill(planned)
  const found = dryRunOf(name, words, cwd, context.hidden)
  if (!found) {
    const known = dryRuns.has(name)
      ? 'this call has no known form that changes nothing'
      : `no way is known to try ${quote(name).slice(0, 80)} without changes`
    return notTried(planned, known)
  }
  const { row, argv } = found
  const secret = argv
    .slice(1)
    .map((word) => resolve(cwd, word))
    .find((path) => whyNotLooked(path, context.hidden) !== null)
  if (secret !== undefined) return notTried(planned, `${secret} is not shown without approval`)
  const { auto_approve } = context.manifest
  if (auto_approve.length > 0 && !auto_approve.includes(argv[0]!))
    return notTried(planned, `the manifest does not let ${argv[0]} run without approval`)
  const looked = argvVerdict(argv, cwd, { secrets: context.hidden })
  const unmet = row.kind !== 'tries' ? await context.whyUnmet(toPreconditions(looked, cwd)) : null
  if (unmet !== null) return notTried(planned, unmet)
  const read = row.kind !== 'tries' ? asRead(looked) : { confine: 'read' as const, env: { LC_ALL: 'C.UTF-8' } }
  const ran = await context.run(patiently(argv), { cwd, ...read })
  const shown = argv.map(quote).join(' ')
  if (ran.stoppedBy !== null || ran.exitCode === 124)
    return notTried(planned, `${shown} did not end in time, or printed too much`)
  const lines = redact(ran.stdout + ran.stderr)
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
  const more = lines.length > maxLines ? [`  … and ${lines.length - maxLines} more lines`] : []
  const said = ran.exitCode === 0 ? '' : `, which ended with ${ran.exitCode ?? ran.signal}`
  const told = [
    `${shown}${said}${lines.length === 0 ? ' prints nothing' : ' prints:'}`,
    ...lines.slice(0, maxLines).map((line) => `  ${line}`),
    ...more,
  ]
  const kept = lines.flatMap((line) => (row.rests ? (row.rests(line) ?? []) : line))
  const untried = row.kind === 'shows' ? [notTried(planned, 'only the present state is shown')] : []
  return {
    told,
    untried,
    rests: restsOnLines([String(ran.exitCode), ...kept]),
    tried: row.kind !== 'shows' && ran.exitCode === 0,
  }
}

async function tryRemoval(
  planned: PlannedCommand,
  cwd: string,
  context: CapabilityContext,
): Promise<RehearsalReport | string> {
  const at = planned.words.indexOf('--')
  const operands = planned.words.slice(1).filter((word, index) => !/^-./.test(word) || (at >= 0 && index >= at))
  const names = operands.filter((word) => word !== '--')
  if (names.some(climbs)) return notTried(planned, 'the command names a file through a directory above')
  const paths = names.map((word) => resolve(cwd, word))
  const found = paths.length === 0 ? null : await treeFacts(paths, context)
  if (!found) return notTried(planned, 'the target is not shown without approval')
  return { told: found.told, untried: [], rests: restsOnLines(found.rests), tried: true }
}

async function tryKill(planned: PlannedCommand): Promise<RehearsalReport | string> {
  const pids = planned.words
    .slice(1)
    .filter((word) => /^\d{1,7}$/.test(word))
    .slice(0, 4)
  if (pids.length === 0) return notTried(planned, 'the command names no process id')
  const told: string[] = []
  const rests: string[] = []
  for (const pid of pids.map(Number)) {
    const facts = await processFacts(pid)
    const never = whyNeverSignalled(pid)
    told.push(
      ...(facts ? formatProcess(facts) : [`there is no process ${pid}`]),
      ...(never ? [`proc_kill would refuse: ${never}`] : []),
    )
    rests.push(facts ? `${pid} ${facts.process.start_time} ${facts.user}` : `${pid} absent`)
  }
  return {
    told,
    untried: [notTried(planned, 'the effect of a signal is known only after the signal')],
    rests: restsOnLines(rests),
    tried: false,
  }
}
