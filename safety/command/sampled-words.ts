import type { Word as BashWord, ParsedScript, WordPart } from 'unbash'
import { dateOutputOf, exactWordsOf } from './known-output.ts'
import { onlyPipeOf, outputOfPipe } from './known-pipes.ts'
import { expandBraces } from './patterns.ts'
import type { Tree, Word } from './tree.ts'

/**
 * Reads arguments that a command or a loop makes, as a sample of the output or as the exact
 * arguments.
 */

/**
 * An argument with samples in `word`. `others` has the arguments that result if a substitution
 * prints nothing, or several words. Each case is judged. `scripts` has the substitutions, which run
 * like commands.
 */
type SampledWord = { word: Word; others: Word[][]; scripts: ParsedScript[] }

type Piece = { text: string; isQuoted: boolean; isSample: boolean; isPattern?: true }

const toWord = (text: string): Word => ({ text, literal: true, quoting: 'bare', pattern: null })
const join = (pieces: readonly Piece[]): string => pieces.map(({ text }) => text).join('')

/**
 * Replaces the variable of a loop, or a known substitution, in an argument; null if there is
 * neither.
 */
export function readSample(node: BashWord, tree: Tree): SampledWord | null {
  if (!node.parts || !/[$`]/.test(node.text)) return null
  const pieces: Piece[] = []
  const scripts: ParsedScript[] = []
  for (const part of node.parts) if (!readPart(part, false, { pieces, scripts, tree })) return null
  const word = toWord(join(pieces))
  const isPattern = pieces.some((piece) => piece.isPattern)
  // Keeps the pattern, which is compared with the lists, because its matches are unknown.
  return {
    word: isPattern ? { ...word, literal: false, pattern: word.text } : word,
    others: otherWords(pieces),
    scripts,
  }
}

function otherWords(pieces: readonly Piece[]): Word[][] {
  const samples = pieces.filter(({ isSample }) => isSample)
  if (samples.length === 0) return []
  const known = pieces.filter(({ isSample }) => !isSample)
  const isGone = known.length === 0 && samples.every(({ isQuoted }) => !isQuoted)
  const others: Word[][] = [isGone ? [] : [toWord(join(known))]]
  const at = pieces.findIndex(({ isSample, isQuoted }) => isSample && !isQuoted)
  // Adds the case of several words: the first ends the text before, the last begins the text after.
  if (at >= 0) others.push([toWord(join(pieces.slice(0, at + 1))), toWord(join(pieces.slice(at)))])
  return others
}

type Reading = { pieces: Piece[]; scripts: ParsedScript[]; tree: Tree }

function readPart(part: WordPart, isQuoted: boolean, reading: Reading): boolean {
  const { pieces, scripts, tree } = reading
  const add = (text: string, isSample: boolean) => pieces.push({ text, isQuoted, isSample })
  if (part.type === 'Literal' || part.type === 'SingleQuoted') return add(part.value, false) > 0
  if (part.type === 'DoubleQuoted') return part.parts.every((inner) => readPart(inner, true, reading))
  if (part.type === 'CommandExpansion') {
    const commands = part.script && onlyPipeOf(part.script)
    const words = commands?.[0]
    if (!commands || !words || !part.script) return false
    const date = words[0] === 'date' && commands.length === 1 ? dateOutputOf(words, isQuoted) : null
    const sample = date ?? outputOfPipe(commands)?.sample
    if (sample === undefined) return false
    scripts.push(part.script)
    return add(sample, true) > 0
  }
  const name = /^\$(?:\{(\w+)\}|(\w+))$/.exec('text' in part ? part.text : '')
  const variable = name && (name[1] ?? name[2]!)
  if (variable === null) return false
  const value = tree.rounds?.get(variable)
  if (value?.isPattern) {
    // Refuses an unquoted name, which the shell splits at a blank; names of the kernel have none.
    if (!isQuoted && !/^\/(?:sys|proc)\//.test(value.text)) return false
    return pieces.push({ text: value.text, isQuoted, isSample: false, isPattern: true }) > 0
  }
  if (value) return (isQuoted || /^[\w./:@%+=,-]+$/.test(value.text)) && add(value.text, false) > 0
  const own = tree.own.get(variable)
  return own !== null && own !== undefined && add(own.text, !own.isExact) > 0
}

type LoopWords = { values: { text: string; isPattern: boolean }[]; scripts: ParsedScript[] }

/**
 * Expands the words of a loop if the shell's result is certain; returns them with their
 * substitutions.
 */
export function readLoopWords(words: readonly BashWord[]): LoopWords | null {
  const values: LoopWords['values'] = []
  const push = (...texts: string[]) => values.push(...texts.map((text) => ({ text, isPattern: false })))
  const scripts: ParsedScript[] = []
  for (const { value, text, parts } of words) {
    const [only, more] = parts ?? []
    if (only?.type === 'CommandExpansion' && !more) {
      const said = only.script && onlyPipeOf(only.script)
      const known = said && ((said.length === 1 && exactWordsOf(said[0]!)) || outputOfPipe(said))
      if (!known || !only.script) return null
      // Adds one sample for all words of the output, because each has the same form. If there is no
      // output, the loop does not run.
      push(...(Array.isArray(known) ? known : [known.sample]))
      scripts.push(only.script)
    } else if (!parts || parts.every(isKnownText)) push(value)
    else if (plainBraces.test(text)) push(...expandBraces(text))
    else if (isPlainPattern(text, parts)) values.push({ text, isPattern: true })
    else return null
  }
  return { values, scripts }
}

/** Whether a text is a path with a pattern as its name: `/sys/block/*`, `/var/log/*.log`. */
const isPlainPattern = (text: string, parts: readonly WordPart[]): boolean =>
  parts.every(({ type }) => type === 'Literal' || type === 'Glob') &&
  /^(?:\.\/|\/[\w.-]+\/)[\w./*?-]*$/.test(text) &&
  (text.match(/[*?]/g)?.length ?? 0) <= 3 &&
  !text.includes('..')

/**
 * Matches one pair of braces with words or a range of numbers, which every shell expands in the
 * same way.
 */
const plainBraces =
  /^[\w./:@%+=-]*\{(?:[\w./:@%+=-]*(?:,[\w./:@%+=-]*)+|(?:0|[1-9]\d{0,4})\.\.(?:0|[1-9]\d{0,4}))\}[\w./:@%+=-]*$/

const isKnownText = (part: WordPart): boolean =>
  part.type === 'Literal' ||
  part.type === 'SingleQuoted' ||
  (part.type === 'DoubleQuoted' && part.parts.every(({ type }) => type === 'Literal'))
