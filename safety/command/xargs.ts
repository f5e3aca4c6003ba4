import type { Word } from './tree.ts'
import { argv, asks, type Unwrapped } from './unwrapped.ts'
import { compile, unwrapByTable } from './wrapper.ts'

/** Commands that take their operands from their input. */

const xargsTable = compile({
  flags:
    '-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit --open-tty -i -e -l --replace --eof --max-lines',
  values: '-a -d -E -I -J -L -n -P -R -s --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var',
  rest: 'argv',
})

/** What a command before `xargs` hands it, by its kind. */
export type InputKind = { kind: 'numbers' | 'names' } | { kind: 'paths'; found: Word; separated: boolean } | null

/** No process of importance: a write that is filled with it is asked about like any other. */
const number: Word = { text: '4711', literal: true, quoting: 'bare', pattern: null }
const name: Word = { text: 'a1', literal: true, quoting: 'bare', pattern: null }

/**
 * The command of `xargs` with what it will be given: words that are known, numbers and names of known form, or paths below a known
 * root. Null where that is not known.
 */
function fillXargs(result: Unwrapped, words: readonly Word[], input: string | null, fed: InputKind): Unwrapped | null {
  const [inner] = result.inner
  if (result.askReason !== null && result.askReason.word !== words[0]) return null
  if (result.inner.length !== 1 || inner?.kind !== 'argv' || !inner.words[0]) return null
  if (
    inner.before.some(({ text }) =>
      /^(?:-p|-a|-o|-t|-x|--interactive|--arg-file|--open-tty|--process-slot-var)/.test(text),
    )
  )
    return null
  const operands = operandsFor(inner.words[0].text, words, input, fed)
  if (!operands) return null
  const replace = replacement(words)
  const filled = replace
    ? operands.map((operand) =>
        argv(
          inner.words.map((word) => (word.text === replace ? operand : word)),
          inner.before,
        ),
      )
    : [argv([...inner.words, ...operands], inner.before)]
  if (replace && inner.words.some(({ text }) => text !== replace && text.includes(replace))) return null
  return {
    ...result,
    inner: filled,
    candidates: [
      ...withArguments(result, input === null ? [] : [input.split(/\s+/)], words).candidates,
      [...inner.words, ...operands],
    ],
    askReason: null,
    judged: true,
  }
}

/** These print nothing of a file's content, whatever they are given. */
const inert: ReadonlySet<string> = new Set('ls stat du file basename dirname readlink realpath wc'.split(' '))

function operandsFor(program: string, words: readonly Word[], input: string | null, fed: InputKind): Word[] | null {
  if (input !== null) {
    const given = input.split(/\s+/).filter((text) => text !== '')
    if (given.length > mostArguments || given.some((text) => !/^[\w./:@+-]+$/.test(text))) return null
    return given.map((text) => ({ ...name, text }))
  }
  switch (fed?.kind) {
    case 'numbers':
      return [number]
    case 'names':
      return [name]
    case 'paths': {
      // A blank in a name makes two words of it, of which the second is somebody else's path.
      const isWhole = fed.separated && words.some(({ text }) => /^(?:-[a-z]*0[a-z]*|--null)$/.test(text))
      return isWhole || inert.has(program) ? [fed.found] : null
    }
    default:
      return null
  }
}

export function unwrapXargs(words: readonly Word[], input: string | null, fed: InputKind): Unwrapped | null {
  const result = unwrapByTable(words, xargsTable)!
  const filled = fillXargs(result, words, input, fed)
  if (filled) return filled
  result.askReason ??= asks(words[0]!, 'takes operands from its input')
  return withArguments(result, input === null ? [] : [input.split(/\s+/).filter((word) => word !== '')], words)
}

/** More than these are not spelled out one by one. */
const mostArguments = 16

/** The commands as they will be with each argument in its place, for the hard list. */
export function withArguments(result: Unwrapped, sources: readonly string[][], words: readonly Word[]): Unwrapped {
  const replace = replacement(words)
  for (const inner of result.inner) {
    if (inner.kind !== 'argv') continue
    const all = sources.flat().slice(mostArguments)
    // All of them at once, as one call gets them.
    const together = sources.flat().slice(0, mostArguments)
    if (together.length > 1 && inner.words[0] && !replace)
      result.candidates.push([
        ...inner.words,
        ...together.map((text) => ({ ...inner.words[0]!, text, literal: false })),
      ])
    if (all.length > 0 && inner.words[0]) {
      const rest = all.map((text) => ({ ...inner.words[0]!, text, literal: false }))
      result.candidates.push([...inner.words, ...rest])
    }
    for (const argument of sources.flat().slice(0, mostArguments)) {
      const put = (text: string) => (replace ? text.replaceAll(replace, argument) : text.replace(/\{\d*\}/g, argument))
      const filled = inner.words.map((word) => ({ ...word, text: put(word.text) }))
      const placed = filled.some((word, index) => word.text !== inner.words[index]!.text)
      result.candidates.push(placed ? filled : [...filled, { ...filled[0]!, text: argument, literal: false }])
    }
  }
  return result
}

/** What `xargs -I` replaces. */
function replacement(words: readonly Word[]): string | null {
  for (const [index, word] of words.entries()) {
    if (word.text === '-I' || word.text === '-J') return words[index + 1]?.text || null
    const attached = /^(?:-I|-i|--replace=)(.+)$/.exec(word.text)
    if (attached) return attached[1]!
    if (word.text === '-i' || word.text === '--replace') return '{}'
  }
  return null
}
