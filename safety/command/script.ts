import {
  type CommandAnalysis,
  type ExecutionContext,
  type Finding,
  isAffordable,
  isInert,
  type Termination,
  tooComplex,
} from './analysis.ts'
import { forbiddenRedirection } from './blocklist.ts'
import { maxPiped } from './known-pipes.ts'
import { firstOfPipe, setRootReadApart } from './observe.ts'
import { parse, type Redirection, type Simple, type Word } from './parse.ts'
import { asksForPaths } from './shown-by-jq.ts'
import { judgeOther, judgeWords } from './simple.ts'
import { quote } from './unwrapped.ts'
import { classifyPipe } from './xargs.ts'

/**
 * Most nested and most total brackets, because the cost of the parser and of braces grows with the
 * square.
 */
const maxDepth = 60
const maxOpened = 600
const maxDefined = 64

/** Counts brackets, quoted or not, because only the parser knows quotes. */
function nestsTooDeep(text: string): boolean {
  let depth = 0
  let opened = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    // Counts ( { and `; a backtick may open or close.
    if (code === 0x28 || code === 0x7b || code === 0x60) {
      opened += 1
      depth += code === 0x60 ? 0 : 1
    } else if ((code === 0x29 || code === 0x7d) && depth > 0) depth -= 1
    if (depth > maxDepth || opened > maxOpened) return true
  }
  return false
}

/** Judges one text for a shell, at the top level or inside a wrapper. */
export function judgeScript(text: string, analysis: CommandAnalysis, context: ExecutionContext): Termination {
  if (!isAffordable(analysis, text.length + 1)) return { ends: true }
  if (nestsTooDeep(text)) {
    analysis.findings.push(tooComplex)
    return { ends: true }
  }
  const tree = parse(text, analysis.constants)
  if (!tree) {
    analysis.findings.push({
      code: 'UNREADABLE',
      reason: 'the parser does not know how bash reads this text',
      token: null,
    })
    return { ends: true }
  }
  const add = (finding: Finding) => {
    if (context.runs || finding.code === 'FORBIDDEN') analysis.findings.push(finding)
  }
  for (const { shape, text } of tree.shapes) {
    if (shape === 'fork bomb') add({ code: 'FORBIDDEN', reason: `${text} starts itself twice`, token: text })
    else add({ code: 'SHAPE', reason: `${shape}: ${text}`, token: text })
  }
  if (tree.error) add({ code: 'SYNTAX', reason: `bash cannot parse the text: ${tree.error}`, token: null })
  if (tree.pipelines.length === 0 && tree.nested.length === 0)
    add({ code: 'EMPTY', reason: 'there is no command', token: null })

  const mayLookAsRoot = analysis.rootReads.size > 0
  const first = context.asRoot && mayLookAsRoot ? firstOfPipe(text, tree) : null
  const changes: Change[] = []
  let ends = true
  let hopeless = false
  for (const pipeline of tree.pipelines) {
    let last: Simple | undefined
    for (const [index, written] of pipeline.entries()) {
      const previous = last
      const next = pipeline[index + 1]
      const simple = asksForPaths(written, next?.isAside ? undefined : next)
      last = simple
      const here = mayLookAsRoot ? { ...context, asRoot: first?.simple === simple } : context
      const termination = judgeSimple(simple, commandsBefore(pipeline, index), analysis, here)
      if (first?.simple === simple && analysis.rootRead) {
        analysis.rootRead = { ...analysis.rootRead, rest: first.rest }
        setRootReadApart(analysis)
      }
      if (termination.ends) continue
      ends = false
      const change = simple.start < 0 ? null : changeFor(simple, previous, termination.text)
      if (change) changes.push(change)
      else hopeless = true
    }
  }
  for (const pipeline of tree.nested) {
    for (const [index, simple] of pipeline.entries())
      judgeSimple(simple, commandsBefore(pipeline, index), analysis, { ...context, runs: false })
  }
  if (ends) return { ends: true }
  return { ends: false, text: hopeless ? null : replaced(text, changes) }
}

type Change = { start: number; end: number; text: string }

function changeFor(simple: Simple, previous: Simple | undefined, text: string | null): Change | null {
  if (text === null) return null
  if (text !== '') return { start: simple.start, end: simple.end, text: written(simple, text) }
  // Drops a pager at the end of a pipe, together with the `|` before it.
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

/**
 * Lists the commands before this command in its pipe. Of a long pipe it returns only the last ones:
 * one more than the number through which names are followed.
 */
const commandsBefore = (pipeline: readonly Simple[], index: number): readonly Simple[] =>
  pipeline.slice(Math.max(0, index - maxPiped - 1), index)

function judgeSimple(
  simple: Simple,
  before: readonly Simple[],
  analysis: CommandAnalysis,
  context: ExecutionContext,
): Termination {
  const previous = before.at(-1)
  for (const { name, value, plain, isOwn } of simple.assignments) {
    if (context.runs && !isOwn && !(plain && value.literal && isInert(name, value.text))) {
      analysis.findings.push({ code: 'ASSIGNMENT', reason: `${name} is set`, token: name })
    }
  }
  // Judges every value, because shells and pagers run the contents of some variables.
  for (const { value } of simple.assignments)
    if (simple.words.length > 0 && value.text !== '')
      judgeScript(value.text, analysis, { ...context, runs: false, input: null })
  for (const redirection of simple.redirections) {
    const { guess } = redirection
    const never =
      forbiddenRedirection(redirection, analysis.directories) ??
      (guess && forbiddenRedirection({ ...redirection, target: guess }, analysis.directories))
    if (never) analysis.findings.push({ code: 'FORBIDDEN', ...never })
    analysis.redirected.push(redirection)
    if (!never && context.runs && !isHarmless(redirection)) {
      const token = `${redirection.operator} ${redirection.target.text}`
      analysis.findings.push({ code: 'REDIRECTION', reason: `${token} is more than /dev/null`, token })
    }
  }
  const isKnown = previous !== undefined && simple.isAside !== true
  const input = simple.input ?? (isKnown ? printed(previous) : null)
  const piped = previous !== undefined || simple.redirections.some(({ operator }) => operator === '<') || context.piped
  const fed = previous !== undefined || simple.input !== null || simple.isFed || context.fed
  const isAlone =
    !previous && input === null && piped === context.piped && fed === context.fed && context.feeds === null
  // Reuses the context if nothing in it changes, because a copy costs as much as reading the
  // command's options.
  const here: ExecutionContext = isAlone
    ? context
    : {
        ...context,
        input: previous ? input : (input ?? context.input),
        piped,
        fed,
        feeds: isKnown ? classifyPipe(before) : null,
      }
  for (const guess of simple.guesses) {
    if (analysis.guessesLeft <= 0) {
      analysis.findings.push({ code: 'SHAPE', reason: 'one text has too many possible readings', token: null })
      break
    }
    analysis.guessesLeft -= 1
    judgeWords(guess, analysis, { ...here, runs: false, asRoot: false })
  }
  judgeDefined(simple.guesses[0] ?? simple.words, analysis, here)
  for (const other of simple.others) judgeOther(other, analysis, here)
  return judgeWords(simple.words, analysis, here)
}

/**
 * Judges a call of a function or alias that the text defines, by the list of forbidden commands.
 */
function judgeDefined(words: readonly Word[], analysis: CommandAnalysis, context: ExecutionContext): void {
  const { constants, looked } = analysis
  const name = words[0]?.text
  // Limits the number of functions and aliases, because each may call every other.
  if (constants.functions.size + constants.aliases.size > maxDefined) {
    if (!analysis.findings.includes(tooComplex)) analysis.findings.push(tooComplex)
    return
  }
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
    context.script(body, analysis, { ...context, runs: false, depth: context.depth + 1 })
    constants.positional = before
  } else
    context.script(`${alias} ${rest.map(quote).join(' ')}`, analysis, {
      ...context,
      runs: false,
      depth: context.depth + 1,
    })
  looked.pop()
}

/** Whether a redirection is to or from /dev/null, or of one stream into another. */
function isHarmless({ operator, target }: Redirection): boolean {
  if (!target.literal) return false
  if (operator === '>&' || operator === '<&') return /^(?:[0-9]|-)$/.test(target.text)
  return target.text === '/dev/null' && operator !== '<>'
}

/** Returns the output of a plain `echo` or `printf`. */
function printed({ words }: Simple): string | null {
  const [first, ...rest] = words
  if (first?.text !== 'echo' && first?.text !== 'printf') return null
  return rest
    .map(({ text }) => text)
    .filter((text, index) => index > 0 || !/^-[neE]+$/.test(text))
    .join(' ')
    .replace(/\\n/g, '\n')
}
