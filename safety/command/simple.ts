import {
  type CommandAnalysis,
  type CommandCode,
  type ExecutionContext,
  ends,
  type Finding,
  isAffordable,
  isInert,
  type Termination,
} from './analysis.ts'
import { forbidden } from './blocklist.ts'
import { listCarriedCommands, listCodeCommands } from './carried.ts'
import { grammars } from './grammars/index.ts'
import { type Impact, impactOf, impactOfRedirection, worse } from './impact.ts'
import { knownAs, nameKey, nameOfWord } from './known-names.ts'
import { enterDirectory, environmentThere, observe, rootReadOf } from './observe.ts'
import { compile, read } from './options.ts'
import { nameOtherForm, saferForm } from './other-forms.ts'
import { type EndlessCommand, unboundedByGrammar, unboundedByName } from './outputs.ts'
import type { Word } from './parse.ts'
import { hostOf, isKnownHost } from './remote-exec-wrappers.ts'
import { surroundingsOf } from './surroundings.ts'
import { unwrap } from './unwrap.ts'
import { type Inner, quote, shell, type Unwrapped } from './unwrapped.ts'
import { isOneWord, isPattern, valueFindings } from './values.ts'
import { foreignCharacter } from './words.ts'

const programs = compile({ ...shell, ...grammars })
/** Matches places below /opt and /usr where vendors put programs with unique names. */
const ownPlace =
  /^\/(?:opt|usr)\/[\w./+-]+\/(?:kafka-[\w-]+(?:\.sh)?|zkServer\.sh|zookeeper-shell(?:\.sh)?|(?:stor|perc)cli(?:64)?|[Mm]ega[Cc]li(?:64)?|h?pssacli|ssacli|fi_info|gitlab-(?:ctl|patronictl)|nvidia-smi|rocm-smi|mm(?:getstate|ls[a-z]+|df|health|diag)|hdfs|yarn|hadoop|nodetool|cqlsh|rabbitmqctl|rabbitmq-diagnostics|pg_isready|pg_controldata|psql|etcdctl|kubectl|crictl|calicoctl|ceph|consul|nomad|vault)$/
const trusted = /^(?:\/usr(?:\/local)?)?\/s?bin\/[^/]+$/

export function judgeWords(words: readonly Word[], analysis: CommandAnalysis, context: ExecutionContext): Termination {
  const first = words[0]
  if (!first || !isAffordable(analysis, lengthOf(words))) return ends
  const name = baseOf(first)
  analysis.commands.add(name)
  analysis.called.push(words)
  const add: Add = (code, word, why, isRefused) => {
    if (context.runs || code === 'FORBIDDEN' || code === 'FOREIGN_CHARACTER') {
      const reason = word ? `${word.text} ${why}` : why
      analysis.findings.push({ code, reason, token: word?.text ?? null, ...(isRefused && { isRefused }) })
    }
  }
  const foreign = foreignCharacter(first.text)
  if (foreign && first.literal) add('FOREIGN_CHARACTER', first, `is not a command's name: ${foreign}`)
  const never = forbidden(outside(words, context.mounts), analysis.directories)
  if (never) analysis.findings.push({ code: 'FORBIDDEN', ...never })
  for (const text of listCodeCommands(name, words)) context.script(text, analysis, { ...context, runs: false })
  for (const text of listCarriedCommands(name, words, context.input))
    context.script(text, analysis, { ...context, runs: false, input: null })
  if (!first.literal || first.quoting === 'split') add('COMMAND_WORD', first, 'is not a plain command word')
  else if (first.text.includes('/') && !trusted.test(first.text)) {
    // Accepts a program at its own place if only root can write there, like one in the system's
    // directories.
    const isLookedAt = ownPlace.test(first.text) && !first.text.includes('..') && !context.elsewhere && analysis.canLook
    if (isLookedAt && programs.has(name))
      analysis.conditions.push({ kind: 'root_only', files: [first.text], program: name, directories: [] })
    else add('UNKNOWN_COMMAND', first, 'is a program in an unusual directory')
  }

  if (name === 'cd' || name === 'pushd') {
    if (!enterDirectory(words, analysis)) add('ARGUMENT', first, 'changes the directory too often to follow')
  }

  const unwrapped = unwrap(name, words, context.input, context.piped, context.feeds)
  if (unwrapped) return judgeWrapper(words, unwrapped, analysis, context, add)
  if (context.runs) return judgeProgram(name, words, analysis, context, add)
  return ends
}

/**
 * Judges another way in which the shell may expand a command. Arguments that the program refuses
 * have no effect.
 */
export function judgeOther(words: readonly Word[], analysis: CommandAnalysis, context: ExecutionContext): void {
  const { findings } = analysis
  const from = findings.length
  judgeWords(words, analysis, context)
  const found = findings.splice(from)
  findings.push(...found.filter(({ isRefused }) => isRefused !== true))
}

/** Returns the worst effect of these commands and redirections. */
export function findWorstImpact({ called, redirected }: Pick<CommandAnalysis, 'called' | 'redirected'>): Impact {
  let worst: Impact = 'look'
  for (const { operator, target } of redirected) worst = worse(worst, impactOfRedirection(operator, target.text))
  for (const words of called) {
    const name = baseOf(words[0]!)
    const texts = words.map(({ text }) => text)
    worst = worse(worst, impactOf(name, texts, programs.has(name)))
  }
  return worst
}

function lengthOf(words: readonly Word[]): number {
  let length = 1
  for (const { text } of words) length += text.length + 1
  return length
}

const baseOf = ({ text }: Word): string => text.slice(text.lastIndexOf('/') + 1)

type Add = (code: CommandCode, word: Word | null, why: string, isRefused?: true) => void

/** Translates paths inside a container to those of the host. */
function outside(words: readonly Word[], mounts: Unwrapped['mounts']): readonly Word[] {
  const mount = mounts.find(({ inside }) => words.some(({ text }) => text === inside || text.startsWith(`${inside}/`)))
  if (!mount) return words
  return words.map((word) =>
    word.text === mount.inside || word.text.startsWith(`${mount.inside}/`)
      ? { ...word, text: `${mount.outside}/${word.text.slice(mount.inside.length)}` }
      : word,
  )
}

function judgeProgram(
  name: string,
  words: readonly Word[],
  analysis: CommandAnalysis,
  context: ExecutionContext,
  add: Add,
): Termination {
  const from = analysis.findings.length
  const termination = judgeByGrammar(name, words, analysis, context, add)
  if (!termination.ends || analysis.findings.length === from) return termination
  const known = quotedPatterns(words, analysis.findings.slice(from))
  const safer = saferForm(known ?? words)
  if (safer) return { ends: false, text: safer.map(quote).join(' ') }
  if (known) return { ends: false, text: known.map(({ text }) => quote(text)).join(' ') }
  const set = context.elsewhere && analysis.findings[from]!.code === 'SURROUNDINGS' ? environmentFor(name, words) : null
  if (set) return { ends: false, text: ['env', ...set, ...words.map(({ text }) => quote(text))].join(' ') }
  const other = nameOtherForm(words)
  const first = analysis.findings[from]!
  if (other !== null && first.code !== 'FORBIDDEN') first.reason += `; unasked runs: ${other}`
  return termination
}

/**
 * Quotes words with patterns that are not paths: `_cluster/health?pretty`, `osd.*`. No file has
 * such a name, so the shell passes the word on unchanged. Null if another word is unknown.
 */
function quotedPatterns(words: readonly Word[], findings: readonly Finding[]): Word[] | null {
  const isPlain = (word: Word) => word.literal || (word.pattern !== null && word.quoting === 'bare' && !word.found)
  const odd = words.filter(({ literal }) => !literal)
  if (odd.length === 0 || !words.every(isPlain)) return null
  const isMeant = odd.every((word) => {
    const isAsked = findings.some(({ token, reason }) => token === word.text && reason.endsWith(isPattern))
    return word.pattern === word.text && !/^[*?[]/.test(word.text) && (isAsked || isOneWord('url', word))
  })
  return isMeant ? words.map((word) => ({ ...word, literal: true, pattern: null })) : null
}

/**
 * Returns `NAME=value` for `env`, with which a program obeys no settings on a machine whose files
 * are not checked. Null if no variable has this effect, or if an argument is unknown.
 */
function environmentFor(name: string, words: readonly Word[]): string[] | null {
  const program = programs.get(name)
  if (!program || !words.every(({ literal }) => literal)) return null
  const needed = environmentThere({ name, words, reading: read(words, program) })
  return needed && Object.entries(needed).map(([variable, value]) => `${variable}=${quote(value)}`)
}

/** Whether code itself sets this variable where files cannot be checked. */
function switchesOff(variable: string, value: string): boolean {
  switches ??= new Set(
    [...programs].flatMap(([name, { grammar }]) => {
      const needed = surroundingsOf(name)?.there
      return needed ? Object.entries({ ...needed, ...grammar.environment }).map((pair) => pair.join('=')) : []
    }),
  )
  return switches.has(`${variable}=${value}`)
}
let switches: ReadonlySet<string> | null = null

function judgeByGrammar(
  name: string,
  words: readonly Word[],
  analysis: CommandAnalysis,
  context: ExecutionContext,
  add: Add,
): Termination {
  const program = programs.get(name)
  if (!program) {
    const unbounded = unboundedByName(name, words, context.piped)
    if (!unbounded) add('UNKNOWN_COMMAND', words[0]!, 'is not a known read-only program')
    return unbounded ? reportEndless(unbounded, analysis, context, add) : ends
  }
  const reading = read(words, program, context.fed ? context.input : undefined)
  const unbounded = unboundedByGrammar(name, reading, words, context.piped)
  if (reading.problem && !unbounded) {
    const { word, why, isRefused, missing } = reading.problem
    const adds = reading.grammars.at(-1)?.adds
    // Adds options only if the shell expands no argument, because quotes would change the meaning
    // of that argument.
    if (missing && adds && words.every(({ literal }) => literal)) {
      add('OPTION_MISSING', words[0]!, `is read-only only with ${adds.join(' ')}`)
      const [first, ...rest] = words.map(({ text }) => quote(text))
      return { ends: false, text: [first, ...adds, ...rest].join(' ') }
    }
    if (word) add('ARGUMENT', word, why, isRefused)
    else add('ARGUMENT', words[0]!, `does more than read: ${why}`, isRefused)
  }
  const { directories, knownHosts, knownNames, names, secrets } = analysis
  for (const finding of valueFindings(reading, { name, directories, knownHosts, knownNames, names, secrets })) {
    analysis.findings.push(finding)
    if (finding.code === 'UNBOUNDED') analysis.bound ??= 'unbounded_stream'
  }
  for (const { environment } of reading.grammars) if (environment) Object.assign(analysis.environment, environment)
  if (!reading.problem) {
    const found = observe({ name, words, reading }, analysis, context)
    if (found) analysis.findings.push(found)
  }
  return unbounded ? reportEndless(unbounded, analysis, context, add) : ends
}

function reportEndless(
  { bound, words }: EndlessCommand,
  analysis: CommandAnalysis,
  context: ExecutionContext,
  add: Add,
): Termination {
  if (context.bounded && bound === 'unbounded_stream') return ends
  analysis.bound ??= bound
  add('UNBOUNDED', null, `does not end by itself (${bound})`)
  return { ends: false, text: words?.map(quote).join(' ') ?? null }
}

function judgeWrapper(
  words: readonly Word[],
  found: Unwrapped,
  analysis: CommandAnalysis,
  context: ExecutionContext,
  add: Add,
): Termination {
  const name = words[0]!
  const from = analysis.findings.length
  if (found.root) {
    analysis.needsRoot = true
    analysis.rootRead = context.asRoot && context.runs ? rootReadOf(words, found, analysis.rootReads) : null
    if (!analysis.rootRead) add('ROOT', name, "runs with another user's rights")
  } else if (found.askReason && !found.interactive) add('WRAPPER', found.askReason.word, found.askReason.text)
  for (const assignment of found.assignments) {
    const isSwitch = context.elsewhere && switchesOff(assignment.name, assignment.value)
    if (!isSwitch && !isInert(assignment.name, assignment.value)) add('ASSIGNMENT', name, `sets ${assignment.name}`)
  }
  for (const word of found.hosts) {
    if (word.text.startsWith('root@')) {
      analysis.needsRoot = true
      add('ROOT', word, 'is root there')
    }
    const host = word.literal ? hostOf(word.text) : null
    if (!host || !isKnownHost(host, analysis.knownHosts)) add('EXFILTRATION', word, 'is a host that was not looked up')
  }
  for (const word of found.names) {
    const { kind, namespace } = found.within
    const key = nameKey(kind, namespace, nameOfWord(kind, word.text))
    const entry = word.literal ? knownAs(analysis.knownNames, key, word.text) : null
    if (entry === null) add('UNKNOWN_NAME', word, 'is a name that was not looked up')
    else analysis.names.add(entry)
  }
  const isUnknown = (word: Word) => !word.literal
  const hasScript = found.inner.some(({ kind }) => kind === 'script')
  const unknown = hasScript ? words.find(isUnknown) : found.inner.flatMap(({ before }) => before).find(isUnknown)
  if (unknown) add('ARGUMENT', unknown, 'is not known before it runs')
  for (const guess of found.candidates)
    judgeWords(guess, analysis, { ...context, runs: false, asRoot: false, mounts: found.mounts })

  const isElsewhere = found.hosts.length > 0 || found.names.length > 0
  const assigned = Object.fromEntries(found.assignments.map(({ name, value }) => [name, value]))
  if (isElsewhere && context.runs) {
    const why = observe({ name: baseOf(name), words, reading: null }, analysis, context)
    if (why) analysis.findings.push(why)
  }

  const inside: ExecutionContext = {
    ...context,
    // Treats a command that runs as root as elsewhere, because root has another home and none of
    // our environment.
    elsewhere: context.elsewhere || isElsewhere || dropsEnvironment(words) || found.root,
    setThere: isElsewhere ? {} : dropsEnvironment(words) ? assigned : { ...context.setThere, ...assigned },
    asRoot: false,
    bounded: context.bounded || found.bounds,
    mounts: [...context.mounts, ...found.mounts],
    depth: context.depth + 1,
    input: found.readsInput || found.judged ? null : context.input,
    feeds: null,
    fed: context.fed && !found.judged,
  }
  for (const other of found.others) judgeOther(other, analysis, inside)
  const terminations = found.inner.map((inner) => ({ inner, termination: judgeInner(inner, analysis, inside) }))
  const [asRoot, another] = analysis.findings.slice(from)
  const [only, more] = found.inner
  // Only names the form without root, because its output may be incomplete.
  if (asRoot?.code === 'ROOT' && !another && only?.kind === 'argv' && !more && terminations[0]!.termination.ends)
    asRoot.reason += `; unasked runs: ${textOf(only)}`
  return combineTerminations(words, found, terminations, { analysis, context, add })
}

/** Whether a program inside loses our environment. */
const dropsEnvironment = (words: readonly Word[]): boolean =>
  baseOf(words[0]!) === 'env' && words.some(({ text }) => /^-(?:[a-z0]*i[a-z0]*|-ignore-environment)?$/.test(text))

/** Most nested layers that are read, because the stack is finite. */
const deepest = 40

function judgeInner(inner: Inner, analysis: CommandAnalysis, context: ExecutionContext): Termination {
  if (context.depth > deepest) {
    analysis.findings.push({
      code: 'TOO_LONG',
      reason: 'nests commands too deeply to review',
      token: null,
    })
    return ends
  }
  if (inner.kind === 'argv') return judgeWords(inner.words, analysis, context)
  if (inner.after.length === 0) return context.script(inner.text, analysis, context)
  const { positional, zero } = analysis.constants
  analysis.constants.zero = inner.after[0]!.text
  analysis.constants.positional = inner.after.slice(1).map(({ text }) => text)
  const termination = context.script(inner.text, analysis, context)
  Object.assign(analysis.constants, { positional, zero })
  return termination
}

type InnerTermination = { inner: Inner; termination: Termination }

function combineTerminations(
  words: readonly Word[],
  found: Unwrapped,
  judged: InnerTermination[],
  { analysis, context, add }: { analysis: CommandAnalysis; context: ExecutionContext; add: Add },
): Termination {
  const terminal = found.tty.some((at) => /^(?:-[a-z]*t[a-z]*|--tty)$/.test(words[at]!.text))
  if (terminal) {
    analysis.bound ??= 'tty_flag'
    add('UNBOUNDED', null, 'waits for a terminal')
  }
  if (found.interactive) return reportEndless({ bound: 'interactive_repl', words: null }, analysis, context, add)
  const repeats = found.endless && !context.bounded
  if (repeats) {
    analysis.bound ??= 'unbounded_stream'
    add('UNBOUNDED', words[0]!, 'does not end by itself')
  }
  if (!terminal && !repeats && judged.every(({ termination }) => termination.ends)) return ends
  const only = judged.length === 1 ? judged[0]! : null
  if (!only || (!only.termination.ends && !only.termination.text)) return { ends: false, text: null }
  const text = only.termination.ends ? textOf(only.inner) : only.termination.text!
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
