import { printsPathsAlone } from './known-output.ts'
import { maxPiped, outputOfPipe } from './known-pipes.ts'
import type { Redirection, Simple, Word } from './tree.ts'
import { argv, asks, empty, type Unwrapped } from './unwrapped.ts'
import { compile, unwrapByTable } from './wrapper.ts'

/** Commands that take their operands from their input. */

const xargsTable = compile({
  flags:
    '-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit --open-tty -i -e -l --replace --eof --max-lines',
  values: '-a -d -E -I -J -L -n -P -R -s --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var',
  rest: 'argv',
})

/** The input that `xargs` gets from the command before it, by kind. */
export type InputKind = { kind: 'samples'; sample: string } | { kind: 'paths'; found: Word; separated: boolean } | null

const toWord = (text: string): Word => ({ text, literal: true, quoting: 'bare', pattern: null })

/**
 * Lists the commands that `xargs` makes of its input: with all words at once, and with as many as
 * its options allow. Words of a known form may be one, many or none. Null if unclear.
 */
function fillXargs(result: Unwrapped, words: readonly Word[], input: string | null, fed: InputKind): Unwrapped | null {
  const [inner] = result.inner
  if (result.askReason !== null && result.askReason.word !== words[0]) return null
  if (result.inner.length !== 1 || inner?.kind !== 'argv' || !inner.words[0]) return null
  const options = readXargsOptions(inner.before)
  if (!options) return null
  const replace = replacement(words)
  const batches = batchesFor(inner.words[0].text, { ...options, replace }, input, fed)
  if (!batches) return null
  const isPart = replace !== null && inner.words.some(({ text }) => text !== replace && text.includes(replace))
  if (isPart && batches.some(([operand]) => !operand?.literal)) return null
  const put = (batch: readonly Word[]) =>
    replace === null
      ? [...inner.words, ...batch]
      : inner.words.flatMap((word) =>
          word.text === replace ? batch : [{ ...word, text: word.text.replaceAll(replace, batch[0]?.text ?? '') }],
        )
  const [likely, ...others] = batches.map(put)
  return {
    ...result,
    inner: likely ? [argv(likely, inner.before)] : [],
    others,
    candidates: [
      ...withArguments(result, input === null ? [] : [input.split(/\s+/)], words).candidates,
      ...batches.map((batch) => [...inner.words, ...batch]),
    ],
    askReason: null,
    judged: true,
  }
}

type XargsOptions = { perCommand: number; isByLine: boolean; isNullSeparated: boolean; mayRunEmpty: boolean }

/** Reads options of `xargs` whose effect on the batches is certain; null for any other option. */
function readXargsOptions(before: readonly Word[]): XargsOptions | null {
  const texts = before.slice(1).map(({ text }) => text)
  const read: XargsOptions = {
    perCommand: Number.POSITIVE_INFINITY,
    isByLine: false,
    isNullSeparated: false,
    mayRunEmpty: true,
  }
  for (let at = 0; at < texts.length; at += 1) {
    const text = texts[at]!
    const [, count, attached] = /^(?:-[nL]|--max-args=|--max-lines=)((\d+)?)$/.exec(text) ?? []
    if (count !== undefined) {
      const number = attached ?? texts[++at] ?? ''
      // Refuses two limits together, because only the stricter one would apply.
      if (!/^[1-9]\d{0,4}$/.test(number) || read.perCommand !== Number.POSITIVE_INFINITY) return null
      read.perCommand = Number(number)
      if (/^(?:-L|--max-lines)/.test(text)) read.isByLine = true
    } else if (/^(?:-P|--max-procs)$/.test(text)) at += 1
    else if (/^(?:-P\d+|--max-procs=\d+)$/.test(text)) continue
    else if (/^(?:-[0r]{1,2}|--null|--no-run-if-empty)$/.test(text)) {
      if (/0|null/.test(text)) read.isNullSeparated = true
      if (/r/.test(text.replace('--null', ''))) read.mayRunEmpty = false
    } else if (text === '-I' || text === '-J') at += 1
    else if (!/^-I.+$/.test(text)) return null
  }
  return read
}

/** Programs that print no contents of files, whatever their operands. */
const inert: ReadonlySet<string> = new Set('ls stat du file basename dirname readlink realpath wc'.split(' '))

type Batching = XargsOptions & { replace: string | null }

function batchesFor(program: string, batching: Batching, input: string | null, fed: InputKind): Word[][] | null {
  const { replace, perCommand, isByLine, isNullSeparated, mayRunEmpty } = batching
  if (input !== null) {
    // Reads a line as one word with -I, whatever the line contains. With -L a batch is the given
    // number of lines, each with all its words, and a line that ends in a blank continues on the
    // next.
    if (isByLine && /[^\S\n]/.test(input.trim())) return null
    const given = input.split(replace ? '\n' : /\s+/).filter((text) => text !== '')
    if (isNullSeparated || given.length > maxArguments || given.some((text) => !/^[\w./:@+-]+$/.test(text))) return null
    return inBatches(given.map(toWord), replace ? 1 : perCommand)
  }
  const one = operandOf(program, isNullSeparated, fed)
  if (!one) return null
  if (replace || perCommand === 1) return [[one]]
  return [[one], [one, one], ...(mayRunEmpty ? [[]] : [])]
}

function inBatches(words: readonly Word[], size: number): Word[][] {
  if (words.length <= size) return [[...words]]
  const batches: Word[][] = []
  for (let at = 0; at < words.length; at += size) batches.push(words.slice(at, at + size))
  return batches
}

function operandOf(program: string, isNullSeparated: boolean, fed: InputKind): Word | null {
  if (fed?.kind === 'samples') return isNullSeparated ? null : toWord(fed.sample)
  if (fed?.kind !== 'paths') return null
  // Refuses names that may have a blank, which splits them into two words, of which the second may
  // be any path.
  return (fed.separated && isNullSeparated) || inert.has(program) ? fed.found : null
}

export function unwrapXargs(words: readonly Word[], input: string | null, fed: InputKind): Unwrapped | null {
  const result = unwrapByTable(words, xargsTable)!
  const filled = fillXargs(result, words, input, fed)
  if (filled) return filled
  result.askReason ??= asks(words[0]!, 'takes operands from its input')
  return withArguments(result, input === null ? [] : [input.split(/\s+/).filter((word) => word !== '')], words)
}

/**
 * Most arguments for which commands are written out. Long commands get fewer, because each argument
 * makes a copy of the command.
 */
const maxArguments = 16
const maxCopiedWords = 4_096

/** Writes out the commands with each argument in its place, for the list of forbidden commands. */
export function withArguments(result: Unwrapped, sources: readonly string[][], words: readonly Word[]): Unwrapped {
  const replace = replacement(words)
  for (const inner of result.inner) {
    if (inner.kind !== 'argv') continue
    const all = sources.flat().slice(maxArguments)
    // Adds the command with all arguments at once, as one call gets them.
    const together = sources.flat().slice(0, maxArguments)
    const apart = together.slice(0, Math.max(1, Math.floor(maxCopiedWords / (inner.words.length + 1))))
    if (together.length > 1 && inner.words[0] && !replace)
      result.candidates.push([
        ...inner.words,
        ...together.map((text) => ({ ...inner.words[0]!, text, literal: false })),
      ])
    if (all.length > 0 && inner.words[0]) {
      const rest = all.map((text) => ({ ...inner.words[0]!, text, literal: false }))
      result.candidates.push([...inner.words, ...rest])
    }
    for (const argument of apart) {
      const put = (text: string) => (replace ? text.replaceAll(replace, argument) : text.replace(/\{\d*\}/g, argument))
      const filled = inner.words.map((word) => ({ ...word, text: put(word.text) }))
      const placed = filled.some((word, index) => word.text !== inner.words[index]!.text)
      result.candidates.push(placed ? filled : [...filled, { ...filled[0]!, text: argument, literal: false }])
    }
  }
  return result
}

/** Returns the text that `xargs -I` replaces. */
function replacement(words: readonly Word[]): string | null {
  for (const [index, word] of words.entries()) {
    if (word.text === '-I' || word.text === '-J') return words[index + 1]?.text || null
    const attached = /^(?:-I|-i|--replace=)(.+)$/.exec(word.text)
    if (attached) return attached[1]!
    if (word.text === '-i' || word.text === '--replace') return '{}'
  }
  return null
}

/** Reads the actions of `find`, and the commands that it runs on the files that it finds. */

/**
 * Reads `find … -exec command {} ;`: each found path becomes an operand. Below plain roots the path
 * has a known pattern, with which the command is judged. `find` itself is judged without the
 * command.
 */
export function unwrapFind(words: readonly Word[]): Unwrapped | null {
  const result = empty()
  const own: Word[] = [words[0]!]
  const found = findPathWord(words)
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at]!
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(word.text)) {
      own.push(word)
      continue
    }
    const rest = words.slice(at + 1)
    // Accepts a plus sign as the command's end only after `{}`.
    const end = rest.findIndex(({ text }, index) => text === ';' || (text === '+' && rest[index - 1]?.text === '{}'))
    const command = rest.slice(0, end < 0 ? rest.length : end)
    // Refuses -execdir, which runs the command in the directory of the found file, whose other
    // files are unknown.
    const isPlain = found !== null && end > 0 && word.text === '-exec' && command[0]?.text !== '{}'
    if (!isPlain || command.some(({ text }) => text !== '{}' && text.includes('{}')))
      result.askReason ??= asks(word, 'runs a command on whatever is found')
    if (end < 0)
      result.candidates.push(
        rest.slice(
          0,
          Math.max(
            0,
            rest.findIndex(({ text }) => text === '+'),
          ),
        ),
      )
    const fill = (...operands: Word[]) => command.flatMap((one) => (one.text === '{}' ? operands : [one]))
    result.inner.push(argv(isPlain ? fill(found) : command))
    if (isPlain && rest[end]?.text === '+') result.others.push(fill(found, found))
    result.candidates.push(command)
    at += end < 0 ? rest.length : end + 1
  }
  if (result.inner.length === 0) return null
  result.inner.push(argv(own))
  result.judged = true
  return result
}

/** Returns a pattern for every path that `find` may reach; null for other roots. */
function findPathWord(words: readonly Word[]): Word | null {
  const from = words.slice(1).findIndex(({ text }) => /^[-(!]/.test(text) && !/^-[HLP]$/.test(text))
  const roots = words.slice(1, from < 0 ? undefined : from + 1).filter(({ text }) => !/^-[HLP]$/.test(text))
  const isPlain =
    roots.length === 1 && roots[0]!.literal && /^\/[\w./-]+$/.test(roots[0]!.text) && !roots[0]!.text.includes('..')
  if (!isPlain || words.some(({ text }) => /^-(?:L|follow)$/.test(text))) return null
  const root = roots[0]!.text.replace(/\/+$/, '')
  const texts = words.map(({ text }) => text)
  const at = texts.indexOf('-name')
  const isAlone = at > 0 && !texts.some((text) => /^(?:-o|-or|,|!|-not|\()$/.test(text))
  const name = isAlone && /^[\w.*-]+$/.test(texts[at + 1] ?? '') ? texts[at + 1]! : '*'
  // Includes hidden names, which `find` also returns and a `*` of a shell omits.
  const pattern = name.startsWith('*') && name === '*' ? `${root}/**` : `${root}/**/${name}`
  return { text: pattern, literal: false, quoting: 'bare', pattern, found: true }
}

const isQuiet = ({ source }: Redirection): boolean => /^2> ?\/dev\/null$/.test(source)

/**
 * Returns the kind of words that a pipe prints, one per line; null if it is unknown. Errors are not
 * among these words.
 */
export function classifyPipe(before: readonly Simple[]): InputKind {
  if (before.length > maxPiped || before.some(({ isAside }) => isAside)) return null
  if (!before.every(({ redirections }) => redirections.every(isQuiet))) return null
  if (!before.every(({ words }) => words.every(({ literal }) => literal))) return null
  const known = outputOfPipe(before.map(({ words }) => words.map(({ text }) => text)))
  if (known) return { kind: 'samples', sample: known.sample }
  const { words } = before[0]!
  if (before.length > 1) return null
  if (words[0]?.text !== 'find' || !printsPathsAlone(words)) return null
  const found = findPathWord(words)
  return found && { kind: 'paths', found, separated: words.some(({ text }) => text === '-print0') }
}
