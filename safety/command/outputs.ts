import type { EndlessReason } from './analysis.ts'
import { type CommandReading, hasOption, type OptionValue } from './options.ts'
import type { Word } from './parse.ts'

/**
 * Decides whether a command ends by itself, whatever its effect, and finds a form of the command
 * that ends.
 */

/**
 * A command that may not end by itself. `words`: the command and arguments that do end; null if
 * there are none, empty if the pipe needs no such command.
 */
export type EndlessCommand = { bound: EndlessReason; words: readonly string[] | null }

/**
 * Programs that wait for a key press. The programs of the first group can be replaced by a command
 * that prints the beginning of a file.
 */
const viewers: ReadonlySet<string> = new Set(['less', 'more', 'most', 'pg', 'view'])
const editors: ReadonlySet<string> = new Set(
  'man info vi vim nvim vimdiff nano pico emacs ed ex joe jed micro mc mcedit crontab-e visudo vipw'.split(' '),
)
const screens: ReadonlyMap<string, readonly string[] | null> = new Map([
  ['htop', ['top', '-b', '-n', '1']],
  ['btop', ['top', '-b', '-n', '1']],
  ['atop', null],
  ['glances', null],
  ['bmon', null],
  ['nload', null],
  ['iftop', null],
  ['nethogs', null],
  ['slabtop', null],
  ['powertop', null],
  ['yes', null],
])
const prompts =
  /^(?:python[\d.]*|node|irb|ghci|lua|php|perl|ruby|R|julia|bc|dc|mysql|mariadb|psql|sqlite3|redis-cli|mongo|mongosh|clickhouse-client|cqlsh|ftp|sftp|telnet|nslookup|fdisk|parted|gdb|screen|tmux)$/

/** Judges programs without a grammar by their name. */
export function unboundedByName(name: string, words: readonly Word[], piped: boolean): EndlessCommand | null {
  if (viewers.has(name)) return { bound: 'pager', words: viewed(words, piped) }
  if (editors.has(name)) return { bound: 'pager', words: null }
  if (screens.has(name)) return { bound: 'unbounded_stream', words: screens.get(name)! }
  if (!piped && words.length === 1 && prompts.test(name)) return { bound: 'interactive_repl', words: null }
  return null
}

function viewed(words: readonly Word[], piped: boolean): readonly string[] | null {
  if (piped && words.length === 1) return []
  const [, file, more] = words
  return file && !more && file.literal && !/^[-+]/.test(file.text) ? ['head', '-n', '200', file.text] : null
}

/**
 * Judges by the grammar: an option or a single interval makes a command endless unless something
 * bounds it.
 */
export function unboundedByGrammar(
  name: string,
  reading: CommandReading,
  words: readonly Word[],
  piped: boolean,
): EndlessCommand | null {
  if (reading.problem) {
    // Treats a client without a command as a session: its first operand names a database, and a
    // second operand is a command.
    const waits = reading.problem.missing && reading.operands.length < 2 && !piped && prompts.test(name)
    return waits ? { bound: 'interactive_repl', words: null } : null
  }
  for (const { endless } of reading.grammars) {
    if (!endless) continue
    const bounds = endless.unless?.filter((option) => hasOption(reading, option)) ?? []
    if (bounds.length > 0 && !reading.values.some((value) => isNoBound(value, bounds))) continue
    const { when } = endless
    const hit =
      when === 'always' ||
      (when === 'period' && reading.operands.length === 2) ||
      (when === 'interval'
        ? isEndlessInterval(reading.operands)
        : when !== 'period' && when.some((option) => hasOption(reading, option)))
    if (hit)
      return { bound: 'unbounded_stream', words: endless.instead && bounded(reading, words, enough(endless, reading)) }
  }
  return null
}

/** A limit of more repetitions or seconds than this does not count as a limit. */
const maxTimes = 1_000
const maxSeconds = 3_600

const isNoBound = ({ kind, word, of }: OptionValue, bounds: readonly string[]): boolean =>
  kind === 'number' && bounds.includes(of ?? '') && !(Number(word.text) <= maxTimes)

/** Whether an interval has no count, or a count that takes too long. */
function isEndlessInterval(operands: readonly Word[]): boolean {
  const numbers = operands.map(({ text }) => text).filter((text) => /^\d+(?:\.\d+)?$/.test(text))
  const [interval = 0, count] = numbers.slice(-2).map(Number)
  return numbers.length === 1 || (count !== undefined && (count > maxTimes || interval * count > maxSeconds))
}

type Endless = NonNullable<CommandReading['grammars'][number]['endless']>

/**
 * Lists the arguments to drop and to add. Adds nothing if the command already limits its output.
 */
function enough({ enough, instead }: Endless, reading: CommandReading): NonNullable<Endless['instead']> {
  const { drop, add } = instead!
  return { drop, add: enough?.some((option) => hasOption(reading, option)) ? [] : add }
}

/**
 * Returns the command without the options that make it endless, and with an option that ends it.
 */
function bounded(
  reading: CommandReading,
  words: readonly Word[],
  { drop, add }: { drop: readonly string[]; add: readonly string[] },
): readonly string[] | null {
  const texts: (string | null)[] = words.map((word) => word.text)
  for (const option of reading.found) {
    if (!drop.includes(option.name)) continue
    const text = texts[option.at]
    if (!option.clustered) texts[option.at] = null
    else if (text) texts[option.at] = text.replace(option.name.slice(1), '')
    if (option.valueAt !== null) texts[option.valueAt] = null
  }
  const kept = texts.map((text) => (text === '-' ? null : text))
  const options = add.filter((text) => text.startsWith('-') || add[0]!.startsWith('-'))
  const operands = add.filter((text) => !options.includes(text))
  const head = kept.slice(0, reading.chosenAt + 1)
  const tail = kept.slice(reading.chosenAt + 1)
  return [...head, ...options, ...tail, ...operands].filter((text) => text !== null)
}

/** Computes the output of programs that only repeat or decode, before they run. */

/** Most characters of a computed output, because a longer one hides no command. */
const longest = 16_384

export const prints = (name: string): boolean => Object.hasOwn(printers, name.slice(name.lastIndexOf('/') + 1))

type Print = (operands: readonly string[], input: string | null) => string | null

/** Returns the output of a command, or null if it is unknown. */
export function outputOf(words: readonly string[], input: string | null): string | null {
  const name = words[0]?.slice(words[0].lastIndexOf('/') + 1) ?? ''
  const print = Object.hasOwn(printers, name) ? printers[name]! : null
  const printed = print?.(words.slice(1), input) ?? null
  return printed === null || printed.length > longest ? null : printed
}

const printers: Readonly<Record<string, Print>> = {
  echo: (operands) => {
    const from = operands.findIndex((text) => !/^-[neE]+$/.test(text))
    const said = (from < 0 ? [] : operands.slice(from)).join(' ')
    const options = (from < 0 ? operands : operands.slice(0, from)).join('')
    return (options.includes('e') ? escapes(said) : said) + (options.includes('n') ? '' : '\n')
  },
  printf: (operands) => {
    const [format, ...rest] = operands[0] === '--' ? operands.slice(1) : operands
    return format === undefined ? null : formatted(format, rest)
  },
  cat: (operands, input) => (operands.every((text) => text === '-' || /^-[a-zA-Z]$/.test(text)) ? input : null),
  base64: (operands, input) => decoded('base64', operands, input),
  openssl: (operands, input) =>
    /^(?:base64|enc -(?:base64|a))\b/.test(operands.join(' ')) ? decoded('base64', operands, input) : null,
  xxd: (operands, input) =>
    operands.join('').includes('r') && input !== null
      ? Buffer.from(input.replace(/[^0-9a-f]/gi, ''), 'hex').toString('latin1')
      : null,
  rev: (operands, input) =>
    operands.length > 0 || input === null
      ? null
      : input
          .split('\n')
          .map((line) => [...line].reverse().join(''))
          .join('\n'),
  tac: (operands, input) => (operands.length > 0 || input === null ? null : input.split('\n').reverse().join('\n')),
  tr: translated,
  seq: (operands) => {
    const numbers = operands.map(Number)
    const [first, last] = numbers.length === 1 ? [1, numbers[0]!] : [numbers[0]!, numbers.at(-1)!]
    if (numbers.length > 2 || !Number.isInteger(first) || !Number.isInteger(last) || last - first > 64) return null
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => `${first + at}\n`).join('')
  },
  ...Object.fromEntries(['head', 'tail', 'sort', 'uniq', 'nl', 'pv', 'sponge'].map((name) => [name, passed(/^-/)])),
  tee: (_operands, input) => input,
  dd: passed(/^(?:status|bs|count|ibs|obs)=/),
  sed: substituted,
}

/** Repeats the known input if no operand names a file. */
function passed(option: RegExp): Print {
  return (operands, input) => (operands.every((text) => option.test(text) || /^\d+$/.test(text)) ? input : null)
}

function decoded(encoding: 'base64', operands: readonly string[], input: string | null): string | null {
  const decodes = operands.some((text) => /^(?:-[di]*[dD][di]*|--decode)$/.test(text))
  return decodes && input !== null ? Buffer.from(input.replace(/\s/g, ''), encoding).toString('latin1') : null
}

const named: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', a: '', b: '', f: '\f', v: '\v', e: '\x1b' }

/** Decodes backslash escapes like `echo -e` and `printf`. */
function escapes(text: string): string {
  return text.replace(
    /\\(?:x([0-9a-f]{1,2})|u([0-9a-f]{1,4})|0?([0-7]{1,3})|([a-z])|(\\))/gi,
    (whole, hex, unicode, octal, letter) => {
      if (hex ?? unicode) return String.fromCharCode(Number.parseInt(hex ?? unicode, 16))
      if (octal) return String.fromCharCode(Number.parseInt(octal, 8))
      if (letter) return Object.hasOwn(named, letter) ? named[letter]! : whole
      return '\\'
    },
  )
}

function formatted(format: string, operands: readonly string[]): string {
  let result = ''
  let next = 0
  do {
    result += escapes(format).replace(/%(?:%|[-+ #0]*\d*(?:\.\d+)?([a-zA-Z]))/g, (whole, letter) => {
      if (whole === '%%') return '%'
      const value = operands[next] ?? ''
      next += 1
      return letter === 'b' ? escapes(value) : value
    })
    if (next === 0 || result.length > longest) break
  } while (next < operands.length)
  return result
}

function translated(operands: readonly string[], input: string | null): string | null {
  const deletes = operands[0] === '-d'
  const [from, to] = (deletes ? operands.slice(1) : operands).map(characters)
  if (input === null || !from || operands.some((text) => /^-[^d]/.test(text) && text.length > 1)) return null
  if (deletes) return [...input].filter((character) => !from.includes(character)).join('')
  if (!to || to.length === 0) return null
  return [...input]
    .map((character) => {
      const at = from.indexOf(character)
      return at < 0 ? character : to[Math.min(at, to.length - 1)]!
    })
    .join('')
}

const classes: Readonly<Record<string, string>> = { lower: 'a-z', upper: 'A-Z', digit: '0-9', space: ' ' }

/** Lists the characters of a set of tr(1). */
function characters(set: string): string {
  return escapes(set)
    .replace(/\[:(\w+):\]/g, (whole, name) => classes[name] ?? whole)
    .replace(/(.)-(.)/g, (_, first: string, last: string) => {
      let between = ''
      for (let code = first.charCodeAt(0); code <= last.charCodeAt(0) && between.length < 256; code += 1)
        between += String.fromCharCode(code)
      return between
    })
}

/**
 * Applies `sed s/x/y/g` to plain text only, so that no regular expression of the command runs here.
 */
function substituted(operands: readonly string[], input: string | null): string | null {
  const found = /^s(.)([\w @.-]*)\1([\w @./-]*)\1(g?)$/.exec(operands.filter((text) => text !== '-e')[0] ?? '')
  if (!found || input === null || found[2] === '' || found[2]!.includes('.')) return null
  return found[4] ? input.replaceAll(found[2]!, found[3]!) : input.replace(found[2]!, () => found[3]!)
}
