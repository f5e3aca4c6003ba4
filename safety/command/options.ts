import { type CloudName, inspectCloud } from './clouds.ts'
import type { Grammar, Grammars, Option, ValueKind } from './grammar.ts'
import type { Word } from './parse.ts'

/**
 * Reads one command by its grammar into values of known kinds, or returns the argument that does
 * not fit.
 */

/**
 * A value with its kind. `repeats`: the shell may make any number of such words here, without
 * changing the meaning of others. `of`: the option of the value.
 */
export type OptionValue = { kind: ValueKind; word: Word; repeats: boolean; of?: string }

/** An option with its place, so that a form that ends can be written without it. */
export type OptionMatch = { name: string; at: number; clustered: boolean; valueAt: number | null }

export type CommandReading = {
  values: OptionValue[]
  found: OptionMatch[]
  operands: Word[]
  /** Grammars from that of the program down to that of the sub-command. */
  grammars: Grammar[]
  /** Index of the last word that chose a grammar: 0, or that of the sub-command's word. */
  chosenAt: number
  /**
   * The word that does not fit, and the reason. Without a word, `why` names the missing part.
   * `isRefused`: the program itself refuses the arguments.
   */
  problem: { word: Word | null; why: string; missing: boolean; isRefused?: true } | null
}

/** Whether a call has an option. A call has few options, so a search is cheaper than a set. */
export function hasOption({ found }: CommandReading, name: string): boolean {
  return found.some((option) => option.name === name)
}

/** A grammar with its own options and those of the outer levels in one map. */
type CompiledGrammar = {
  grammar: Grammar
  style: NonNullable<Grammar['style']>
  options: Map<string, Option>
  commands: Map<string, CompiledGrammar>
  refuses: RegExp[]
  refusesOperands: RegExp[]
  only: { value: RegExp; first: RegExp }[]
}

export function compile(grammars: Grammars): Map<string, CompiledGrammar> {
  const seen = new Map<Grammar, CompiledGrammar>()
  const compiled = new Map<string, CompiledGrammar>()
  for (const [name, grammar] of Object.entries(grammars)) {
    const made = seen.get(grammar) ?? compileOne(grammar, 'posix', new Map())
    seen.set(grammar, made)
    compiled.set(name, made)
  }
  return compiled
}

function compileOne(
  grammar: Grammar,
  outerStyle: CompiledGrammar['style'],
  outer: Map<string, Option>,
): CompiledGrammar {
  const style = grammar.style ?? outerStyle
  const options = new Map([...outer, ...Object.entries(grammar.options ?? {})])
  const commands = new Map(
    Object.entries(grammar.commands ?? {}).map(([name, inner]) => [name, compileOne(inner, style, options)]),
  )
  const refusesOperands = (grammar.refusesOperands ?? []).map((pattern) => new RegExp(pattern, 'i'))
  const refuses = (grammar.refuses ?? []).map((pattern) => new RegExp(pattern, 'i'))
  const only = (grammar.only ?? []).map(({ value, first }) => ({
    value: new RegExp(value),
    first: new RegExp(first, 'i'),
  }))
  return { grammar, style, options, commands, refuses, refusesOperands, only }
}

/**
 * Reads the words of a command. `input`: the output of the command before it, if it is known;
 * undefined if there is none.
 */
export function read(words: readonly Word[], program: CompiledGrammar, input?: string | null): CommandReading {
  const reading: CommandReading = {
    values: [],
    found: [],
    operands: [],
    grammars: [program.grammar],
    chosenAt: 0,
    problem: null,
  }
  if (program.grammar.cloud) return readCloud(program.grammar.cloud, words, reading)
  let level = program
  let ended = false
  let at = 1
  while (at < words.length) {
    const word = words[at]!
    const text = word.text
    if (text === '--' && level.grammar.joins) return fail(reading, word, 'begins another command')
    if (!ended && text === '--' && !level.grammar.keywords?.includes('--')) {
      ended = true
      at += 1
    } else if (!ended && isOption(text, level)) {
      const next = readOption(words, at, level, reading)
      if (next === null) return reading.problem ? reading : fail(reading, word, 'is not a known read-only option')
      at = next
    } else if (level.commands.size > 0) {
      const inner = word.literal ? level.commands.get(text) : undefined
      if (!inner) return fail(reading, word, 'is not a known read-only sub-command')
      level = inner
      reading.grammars.push(inner.grammar)
      reading.chosenAt = at
      at += 1
    } else if (level.grammar.keywords?.includes(text)) {
      at += 1
    } else if (at === 1 && isLetters(text, level.grammar)) {
      const next = readLetters(words, level.grammar, reading)
      if (next === null) return fail(reading, word, 'lacks a value')
      at = next
    } else {
      reading.operands.push(word)
      at += 1
    }
  }
  return finish(reading, level, input)
}

function isOption(text: string, level: CompiledGrammar): boolean {
  if (level.grammar.keywords?.includes(text)) return false
  if (level.options.has(text)) return true
  if (level.style === 'plain') return readsAttached(text, level)
  return text.startsWith('-') && text.length > 1
}

/**
 * Whether a word has its value attached; in plain style an option takes a value by `=` only if the
 * grammar lists it.
 */
const readsAttached = (text: string, level: CompiledGrammar): boolean =>
  text.startsWith('--') && text.includes('=') && level.options.has(text.slice(0, text.indexOf('=')))

const isLetters = (text: string, grammar: Grammar): boolean =>
  grammar.bsd !== undefined && [...text].every((letter) => grammar.bsd!.includes(letter))

/**
 * Reads options without a dash: `ps aux`, `tar tf x`. The values of such options follow in the
 * order of the letters.
 */
function readLetters(words: readonly Word[], grammar: Grammar, reading: CommandReading): number | null {
  let next = 2
  for (const letter of words[1]!.text) {
    const kind = grammar.bsdValues?.[letter]
    reading.found.push({ name: `-${letter}`, at: 1, clustered: true, valueAt: kind ? next : null })
    if (!kind) continue
    const word = words[next]
    if (!word) return null
    reading.values.push({ kind, word, repeats: false })
    next += 1
  }
  return next
}

/** Returns the index of the word after the option; null if the option does not fit. */
function readOption(
  words: readonly Word[],
  at: number,
  level: CompiledGrammar,
  reading: CommandReading,
): number | null {
  const word = words[at]!
  const text = word.text
  if (!word.literal) return null
  const whole = level.options.get(text)
  if (whole !== undefined) return takeNext(words, { name: text, at, option: whole, clustered: false }, reading)
  const equals = text.indexOf('=')
  if (equals > 1 && (text.startsWith('--') || level.style === 'word')) {
    const name = text.slice(0, equals)
    const option = level.options.get(name)
    if (option === 'flag' && abbreviated(name, level)) {
      reading.found.push({ name, at, clustered: false, valueAt: null })
      return at + 1
    }
    if (option === undefined && abbreviated(name, level)) {
      reading.found.push({ name: abbreviated(name, level)!, at, clustered: false, valueAt: null })
      return at + 1
    }
    // Accepts `flag=true`, as Go programs do; other programs do not accept it.
    if (option === 'flag' && text.slice(equals + 1) === 'true' && level.style === 'posix') {
      reading.found.push({ name, at, clustered: false, valueAt: null })
      return at + 1
    }
    if (option === undefined || option === 'flag') return null
    return takeAttached(word, text.slice(equals + 1), { name, at, option, clustered: false }, reading)
  }
  if (level.grammar.digits && /^-[0-9]+$/.test(text)) return at + 1
  const meant = abbreviated(text, level)
  if (meant) {
    reading.found.push({ name: meant, at, clustered: false, valueAt: null })
    return at + 1
  }
  if (text.startsWith('--') || level.style === 'word') return null
  return readCluster(words, at, level, reading)
}

/**
 * Reads an abbreviation as GNU programs do: `--fol` as `--follow`. Abbreviations count only for
 * options that make a program endless.
 */
function abbreviated(text: string, { grammar }: CompiledGrammar): string | undefined {
  const when = grammar.endless?.when
  if (!Array.isArray(when) || !/^--\w{2}/.test(text)) return undefined
  return (when as readonly string[]).find((name) => name.startsWith(text.replace(/=.*$/, '')))
}

function readCluster(
  words: readonly Word[],
  at: number,
  level: CompiledGrammar,
  reading: CommandReading,
): number | null {
  const word = words[at]!
  const text = word.text
  for (let index = 1; index < text.length; index += 1) {
    const name = `-${text[index]}`
    const option = level.options.get(name)
    if (option === undefined) return null
    const rest = text.slice(index + 1)
    const clustered = text.length > 2
    if (option === 'flag') {
      reading.found.push({ name, at, clustered, valueAt: null })
      continue
    }
    if (rest === '') return takeNext(words, { name, at, option, clustered }, reading)
    // Removes `=` of `-o=x`, which some programs read as part of the value. Without `=`, more
    // checks apply.
    return takeAttached(word, rest.replace(/^=/, ''), { name, at, option, clustered }, reading)
  }
  return at + 1
}

/** An option in the word at `at`. `clustered`: the word has other options too, as in `-xzf`. */
type OptionAt = { name: string; at: number; option: Option; clustered: boolean }

function takeNext(
  words: readonly Word[],
  { name, at, option, clustered }: OptionAt,
  reading: CommandReading,
): number | null {
  if (option === 'flag' || option.endsWith('?')) {
    reading.found.push({ name, at, clustered, valueAt: null })
    return at + 1
  }
  const value = words[at + 1]
  if (!value) {
    reading.problem = { word: words[at]!, why: 'lacks a value', missing: false, isRefused: true }
    return null
  }
  reading.found.push({ name, at, clustered, valueAt: at + 1 })
  reading.values.push({ kind: option as ValueKind, word: value, repeats: false, of: name })
  return at + 2
}

function takeAttached(
  word: Word,
  text: string,
  { name, at, option, clustered }: OptionAt,
  reading: CommandReading,
): number {
  const kind = (option.endsWith('?') ? option.slice(0, -1) : option) as ValueKind
  reading.found.push({ name, at, clustered, valueAt: null })
  reading.values.push({ kind, word: { ...word, text, pattern: null }, repeats: false, of: name })
  return at + 1
}

function readCloud(cloud: CloudName, words: readonly Word[], reading: CommandReading): CommandReading {
  const unknown = words.find(
    ({ literal, pattern }) => !literal && !(pattern && /^(?:Name|Key|Reservations|\*?[A-Z])/.test(pattern)),
  )
  if (unknown) return fail(reading, unknown, 'is not known before it runs')
  const why = inspectCloud(
    cloud,
    words.slice(1).map(({ text }) => text),
  )
  for (const word of words) {
    const place = placeIn(word.text, words)
    if (place !== null) reading.values.push({ kind: 'place', word: { ...word, text: place }, repeats: false })
  }
  return why === null ? reading : fail(reading, null, why)
}

/**
 * Returns the bucket whose object an argument names, because the bucket's owner sees the requested
 * name.
 */
function placeIn(text: string, words: readonly Word[]): string | null {
  const uri = /^(?:s3|gs):\/\/([^/]*)/.exec(text)
  if (uri) return uri[1]!
  const attached = /^--bucket=(.*)$/s.exec(text)
  if (attached) return attached[1]!
  const at = words.findIndex((word) => word.text === '--bucket')
  return at > 0 && words[at + 1]?.text === text ? text : null
}

function finish(reading: CommandReading, level: CompiledGrammar, input: string | null | undefined): CommandReading {
  const { grammar } = level
  const isNamed = (name: string) => hasOption(reading, name)
  const answers = grammar.input !== undefined && typeof input === 'string' && new RegExp(grammar.input, 'i').test(input)
  if (grammar.input !== undefined && input !== undefined && !answers && !isNamed('-z'))
    return fail(reading, null, 'sends its input')
  if (level.commands.size > 0 && !grammar.bare) return lack(reading, 'a sub-command is missing')
  for (const { requires } of reading.grammars) {
    if (requires && !answers && !requires.some(isNamed))
      return lack(reading, `one of ${requires.join(', ')} is missing`)
  }
  for (const { requiresAll } of reading.grammars) {
    const missing = requiresAll?.find((name) => !isNamed(name))
    if (missing) return lack(reading, `${missing} is missing`)
  }
  const { first = [], rest, min = 0, unlessOption } = grammar.operands ?? noOperands
  const skipped = unlessOption?.some(isNamed) ? 1 : 0
  let place = skipped
  for (const word of reading.operands) {
    const placed = first[place++]
    const kind = placed ?? rest
    if (!kind) return fail(reading, word, 'is one operand too many')
    reading.values.push({ kind, word, repeats: placed === undefined })
  }
  const refused =
    level.refuses.length > 0
      ? matching(
          reading.values.map(({ word }) => word),
          level.refuses,
        )
      : undefined
  const odd = level.refusesOperands.length > 0 ? matching(reading.operands, level.refusesOperands) : undefined
  if (odd) return fail(reading, odd, 'is not a known read-only word')
  if (refused) return fail(reading, refused, 'does more than read here, or shows a secret')
  const { needs } = grammar
  const needy =
    needs &&
    matching(
      reading.values.map(({ word }) => word),
      [new RegExp(needs.value)],
    )
  if (needs && needy && !needs.options.some(isNamed))
    return fail(reading, needy, needs.because ?? `prints everything: name fields with ${needs.options[0]}`)
  const broad = level.only.find(({ value, first }) => {
    return (
      reading.values.some(({ word }) => value.test(word.text)) &&
      reading.operands.some(({ text }, at) => (at === 0 || text.includes('/')) && !first.test(text))
    )
  })
  if (broad) return fail(reading, reading.operands[0] ?? null, 'may hold secrets and is printed as a whole')
  const second = grammar.second === undefined ? undefined : reading.operands[1]
  if (second && !new RegExp(grammar.second!).test(second.text))
    return fail(reading, second, 'is not a known read-only word')
  if (reading.operands.length + skipped < min) {
    lack(reading, 'an operand is missing')
    reading.problem = { ...reading.problem!, isRefused: true }
  }
  return reading
}

const noOperands: NonNullable<Grammar['operands']> = {}

function matching(words: readonly Word[], patterns: readonly RegExp[]): Word | undefined {
  return words.find(({ text }) => patterns.some((pattern) => pattern.test(text)))
}

function fail(reading: CommandReading, word: Word | null, why: string): CommandReading {
  reading.problem = { word, why, missing: false }
  return reading
}

function lack(reading: CommandReading, why: string): CommandReading {
  reading.problem = { word: null, why, missing: true }
  return reading
}
