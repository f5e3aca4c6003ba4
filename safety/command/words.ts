import type { Word as BashWord, SyntaxNode, WordPart } from 'unbash'
import { mark, type Tree, type Word } from './tree.ts'

/** Finds characters that an approver cannot see. Hidden characters are refused anywhere. */

type Hidden = { what: string; from: number; to: number }

const hidden: readonly Hidden[] = [
  { what: 'a NUL or control character', from: 0x00, to: 0x08 },
  { what: 'a control character', from: 0x0b, to: 0x1f },
  { what: 'a control character', from: 0x7f, to: 0x9f },
  { what: 'a soft hyphen', from: 0xad, to: 0xad },
  { what: 'an invisible joiner', from: 0x034f, to: 0x034f },
  { what: 'a direction mark', from: 0x061c, to: 0x061c },
  { what: 'an invisible filler', from: 0x115f, to: 0x1160 },
  { what: 'an invisible vowel', from: 0x17b4, to: 0x17b5 },
  { what: 'a variation selector', from: 0x180b, to: 0x180f },
  { what: 'a zero-width or direction character', from: 0x200b, to: 0x200f },
  { what: 'a line separator or direction character', from: 0x2028, to: 0x202e },
  { what: 'an invisible operator or direction character', from: 0x2060, to: 0x206f },
  { what: 'an invisible filler', from: 0x3164, to: 0x3164 },
  { what: 'half a character', from: 0xd800, to: 0xdfff },
  { what: 'a variation selector', from: 0xfe00, to: 0xfe0f },
  { what: 'a byte order mark', from: 0xfeff, to: 0xfeff },
  { what: 'an invisible filler', from: 0xffa0, to: 0xffa0 },
  { what: 'a non-character', from: 0xfff9, to: 0xffff },
  { what: 'a musical control', from: 0x1d173, to: 0x1d17a },
  { what: 'a tag character', from: 0xe0000, to: 0xe0fff },
]

/** Returns the first invisible character of the text, as `U+202E (…)`; null if there is none. */
export function hiddenCharacter(text: string): string | null {
  // Decides most commands by one regular expression, because they are printable ASCII.
  if (!/[^\t\n\x20-\x7e]/.test(text)) return null
  for (const character of text) {
    const code = character.codePointAt(0)!
    if (code === 0x09 || code === 0x0a) continue
    const found = hidden.find(({ from, to }) => code >= from && code <= to)
    if (found) return `U+${code.toString(16).toUpperCase().padStart(4, '0')} (${found.what})`
  }
  return null
}

/**
 * Returns the first character outside ASCII, which in a word of a command is a look-alike or a wide
 * blank: `ｒm`, `git status`.
 */
export function foreignCharacter(word: string): string | null {
  if (!/[^\x20-\x7e]/.test(word)) return null
  const found = /\P{ASCII}/u.exec(word)
  return found ? `U+${found[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}` : null
}

/** Reads the words of a command, and finds out which of them are known before the command runs. */

/** Reads a word, and whether it is known beforehand. `lookInside` gets each unknown part. */
export function readWord(node: BashWord, tree: Tree, lookInside: (part: WordPart) => void): Word {
  const parts = node.parts
  const tilde = node.text.startsWith('~') && /^~[^/]/.test(node.text) && !/^~root(?:\/|$)/.test(node.text)
  // Marks `~+`, `~-` and `~3`, which are variables of the shell, and another user's home, which is
  // unknown here.
  if (tilde) mark(tree, 'tilde', node.text)
  if (!parts) {
    return { text: node.value, literal: !tilde, quoting: node.text === node.value ? 'bare' : 'split', pattern: null }
  }
  let literal = !tilde
  let pattern: string | null = ''
  for (const part of parts) {
    const quoted = part.type === 'SingleQuoted' || part.type === 'DoubleQuoted'
    const known = part.type === 'Literal' || part.type === 'SingleQuoted' || onlyLiterals(part) || isPlainAnsi(part)
    if (!known) literal = false
    if (part.type === 'Glob') pattern = pattern === null ? null : pattern + part.text
    else if (known && !quoted && part.type === 'Literal') pattern = pattern === null ? null : pattern + part.value
    else pattern = null
    if (!known && part.type !== 'Glob') lookInside(part)
  }
  const whole = parts.length === 1 && (parts[0]!.type === 'SingleQuoted' || parts[0]!.type === 'DoubleQuoted')
  const bare =
    parts.every(({ type }) => type !== 'SingleQuoted' && type !== 'DoubleQuoted' && type !== 'AnsiCQuoted') &&
    !node.text.includes('\\')
  return {
    text: node.value,
    literal,
    quoting: whole ? 'whole' : bare ? 'bare' : 'split',
    pattern: literal || tilde || !bare || pattern === null ? null : boundedPattern(pattern),
  }
}

/** Whether `$'\t'` is a tab, a quote or a backslash. A numeric escape could be any letter. */
const isPlainAnsi = (part: SyntaxNode): boolean =>
  part.type === 'AnsiCQuoted' && /^\$'(?:[^\\']|\\[t\\'"])*'$/.test(part.text)

const onlyLiterals = (part: SyntaxNode): boolean =>
  part.type === 'DoubleQuoted' && part.parts.every((inner) => inner.type === 'Literal')

/** Most wildcards with which a pattern is compared, because more could take very long. */
const maxWildcards = 6

function boundedPattern(pattern: string): string | null {
  const short = pattern.replace(/\*+/g, '*')
  return (short.match(/[*?[]/g)?.length ?? 0) > maxWildcards || short.length > 200 ? null : short
}

/**
 * Definitions that a text makes before it uses them: variables, positional parameters, functions,
 * aliases. Used only for the list of forbidden commands: `a=rm; $a -rf /` is that command, and a
 * wrong value can only make a verdict stricter.
 */
export type Constants = {
  /**
   * Possible values of a variable, the newest last; each as its fields, of which a scalar has one.
   */
  variables: ReadonlyMap<string, string[][]>
  /** Bodies of functions and texts of aliases, as written. */
  functions: ReadonlyMap<string, string>
  aliases: ReadonlyMap<string, string>
  /** Arguments of the current function or script. */
  positional: readonly string[]
  /** The value of `$0`. */
  zero: string
}

/** Most values of one variable that are tried. */
const maxValues = 8
/** Longest value that is kept, because a longer one hides no command. */
const maxValueCharacters = 4096

/**
 * Variables that every shell has. The values of these variables matter for characters cut out of
 * them: `${PATH:0:1}`.
 */
const given: Readonly<Record<string, string>> = {
  IFS: ' \t\n',
  HOME: '/root',
  PWD: '/',
  OLDPWD: '/',
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  SHELL: '/bin/bash',
  BASH: '/bin/bash',
  OSTYPE: 'linux-gnu',
  HOSTTYPE: 'x86_64',
}

const none: ReadonlyMap<string, string & string[][]> = new Map()

export const noConstants = (): Constants => ({
  variables: none,
  functions: none,
  aliases: none,
  positional: [],
  zero: 'bash',
})

export function remember(constants: Constants, name: string, fields: string[]): void {
  if (fields.some((field) => field.length > maxValueCharacters)) return
  const before = constants.variables.get(name) ?? []
  set(constants, 'variables', name, [...before.slice(1 - maxValues), fields])
}

export function defineWord(constants: Constants, kind: 'functions' | 'aliases', name: string, text: string): void {
  set(constants, kind, name, text)
}

/** Sets an entry. Creates a map only with its first entry, because most texts define nothing. */
function set<K extends 'variables' | 'functions' | 'aliases'>(
  constants: Constants,
  kind: K,
  name: string,
  value: string | string[][],
): void {
  if (constants[kind] === none) constants[kind] = new Map() as Constants[K]
  ;(constants[kind] as Map<string, typeof value>).set(name, value)
}

/**
 * Counts the readings of a text with these definitions: the largest number of values of one
 * variable.
 */
export function countReadings({ variables }: Constants): number {
  let max = 1
  for (const values of variables.values()) max = Math.max(max, values.length)
  return max
}

/** Returns the fields of a parameter, if they are known. `back` counts from the newest value. */
export function knownFields(constants: Constants, name: string, back: number): readonly string[] | null {
  if (name === '@' || name === '*') return constants.positional
  if (name === '#') return [String(constants.positional.length)]
  if (/^\d+$/.test(name)) {
    const value = name === '0' ? constants.zero : constants.positional[Number(name) - 1]
    return value === undefined ? [] : [value]
  }
  const values = constants.variables.get(name)
  if (values) return values[Math.max(0, values.length - 1 - back)]!
  return Object.hasOwn(given, name) ? [given[name]!] : null
}
