import type { Word as BashWord, Command, Redirect, WordPart } from 'unbash'
import type { Word } from './tree.ts'

/**
 * Programs that print words of a known form, with the options that keep this form. An argument that
 * is made of this output is judged by a sample. Any other option may print anything: a separator, a
 * template, a command line.
 */

/** The form of an output: one number or one name per line. */
type OutputForm = 'numbers' | 'names'

/**
 * `sample` represents each printed word. The sample is not the number of a vital process or an
 * existing name.
 */
type KnownPrinter = {
  form: OutputForm
  sample: string
  /** Sub-commands, one of which must come first. */
  verbs?: string
  /** Letters of short options, those without a value and those with one. */
  flags: string
  valued?: string
  /** Long options, those without a value and those with one. */
  long?: string
  longValued?: string
  /** Options of which one is required. */
  needs?: string
  maxOperands: number
}

const processNumber = '4711'
const plainName = 'a1'
const quietList = { form: 'names', sample: plainName, needs: 'q --quiet', maxOperands: 0 } as const

const engineList: KnownPrinter = {
  ...quietList,
  verbs: 'ps images',
  flags: 'aql',
  valued: 'nf',
  long: 'all quiet latest no-trunc',
  longValued: 'last filter',
}

const printers: Readonly<Record<string, KnownPrinter>> = {
  // Excluded: -d, -l and -a, which print a separator, names and command lines: pgrep(1), procps 4.
  pgrep: {
    form: 'numbers',
    sample: processNumber,
    flags: 'cfinovwx',
    valued: 'gGPstuU',
    long: 'count full ignore-case newest oldest exact inverse',
    longValued: 'parent session terminal uid euid group older pgroup',
    maxOperands: 1,
  },
  pidof: { form: 'numbers', sample: processNumber, flags: 'csxw', valued: 'o', maxOperands: 4 },
  lsof: { form: 'numbers', sample: processNumber, flags: 'tnPaO', valued: 'ipuc', needs: 't', maxOperands: 1 },
  nproc: { form: 'numbers', sample: '4', flags: '', long: 'all', longValued: 'ignore', maxOperands: 0 },
  whoami: { form: 'names', sample: plainName, flags: '', maxOperands: 0 },
  uname: {
    form: 'names',
    sample: plainName,
    flags: 'mnrsp',
    long: 'kernel-name nodename kernel-release machine processor',
    maxOperands: 0,
  },
  hostname: { form: 'names', sample: 'localhost', flags: 'sf', long: 'short fqdn long', maxOperands: 0 },
  docker: engineList,
  podman: engineList,
  crictl: {
    ...quietList,
    verbs: 'ps pods images',
    flags: 'aql',
    valued: 'n',
    long: 'all quiet latest no-trunc',
    longValued: 'last name state namespace pod image',
  },
}

/** Kinds whose names are DNS labels, as the API server enforces. */
export const dnsNamed =
  'no|nodes?|po|pods?|ns|namespaces?|deploy|deployments?|sts|statefulsets?|ds|daemonsets?|rs|replicasets?|jobs?|cj|cronjobs?|svc|services?|pvc|persistentvolumeclaims?|pv|persistentvolumes?|ing|ingress(?:es)?'

/** Complete command lines that print only names, each one word, in the server's alphabet. */
const listingLines: readonly { line: RegExp; sample: string }[] = [
  // `kind/name`, RFC 1123: kubectl get -o name.
  {
    line: /^(?:kubectl|oc) (?:-n [\w-]+ )?get ([a-z.]+)(?: (?:-n [\w-]+|-n=[\w-]+|--namespace[= ][\w-]+|-l [\w./=,!-]+|--selector[= ][\w./=,!-]+|--field-selector[= ][\w./=,!-]+))* (?:-o ?|-o=|--output[= ])name(?: (?:-n [\w-]+|-l [\w./=,!-]+))*$/,
    sample: '$1/a1',
  },
  // Matches commands that print only the name of one listed object, or of all.
  {
    line: new RegExp(
      `^(?:kubectl|oc) (?:-n [\\w-]+ )?get (?:${dnsNamed})(?: (?:-n [\\w-]+|--namespace[= ][\\w-]+|-A|-l [\\w./=,!-]+|--selector[= ][\\w./=,!-]+|--field-selector[= ][\\w./=,!-]+))* (?:-o ?|-o=|--output[= ])jsonpath=\\{\\.items\\[(?:\\d+|\\*)\\]\\.metadata\\.(?:name|namespace)\\}(?: (?:-n [\\w-]+|-l [\\w./=,!-]+))*$`,
    ),
    sample: 'a1',
  },
  {
    line: /^docker ps(?: (?:-a|--all|-f [\w=.-]+|--filter[= ][\w=.-]+))* --format[= ]\{\{ ?\.(?:Names|ID) ?\}\}$/,
    sample: 'a1',
  },
  // Prints numbers of jobs, those of an array with `_`: squeue(1); -h omits the header.
  {
    line: /^squeue(?: (?:-u [\w-]+|--me|-p [\w,-]+|-t [\w,]+|-h|--noheader))* (?:-o ?%[iAF]|--format=%[iAF])(?: (?:-u [\w-]+|-h|--noheader|--me))*$/,
    sample: '4711_2',
  },
]

/**
 * Returns the form of the output of this command line if all of the output is known; null
 * otherwise.
 */
export function knownOutputOf(words: readonly string[]): { form: OutputForm; sample: string } | null {
  const [name = '', ...rest] = words
  const whole = words.join(' ')
  const listing = listingLines.find(({ line }) => line.test(whole))
  if (listing && (name !== 'squeue' || / (?:-h|--noheader)(?: |$)/.test(whole)))
    return words.some((word) => /\s/.test(word.replace(/^\{\{ | \}\}$/g, '')))
      ? null
      : { form: 'names', sample: whole.replace(listing.line, listing.sample) }
  const printer = Object.hasOwn(printers, name) ? printers[name]! : null
  if (!printer) return null
  const verb = printer.verbs === undefined ? null : rest.shift()
  if (verb === undefined || (verb !== null && !printer.verbs!.split(' ').includes(verb))) return null
  // Allows only the separator `-d,`, because top, ps and lsof accept such a list.
  const isList = name === 'pgrep' && takeOut(rest, ['-d,'], ['-d', ','], ['--delimiter', ','], ['--delimiter=,'])
  const seen = readOptions(printer, rest)
  if (seen === null || (printer.needs && !printer.needs.split(' ').some((option) => seen.has(option)))) return null
  // Refuses several options, with which uname prints several words.
  if (name === 'uname' && seen.size > 1) return null
  return { form: printer.form, sample: isList ? `${printer.sample},4712` : printer.sample }
}

/** Removes the first of the sequences in `runs` that is among the arguments. */
function takeOut(words: string[], ...runs: string[][]): boolean {
  for (const run of runs) {
    const at = words.findIndex((_, from) => run.every((text, index) => words[from + index] === text))
    if (at < 0) continue
    words.splice(at, run.length)
    return true
  }
  return false
}

/**
 * Lists the given options, by letter or as `--name`. Null if one is not listed, or there are too
 * many operands.
 */
function readOptions(printer: KnownPrinter, words: readonly string[]): Set<string> | null {
  const seen = new Set<string>()
  const isLong = (list: string | undefined, name: string) => list?.split(' ').includes(name) ?? false
  let operands = 0
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]!
    const [name = '', value] = word.startsWith('--') ? word.slice(2).split(/=(.*)/s) : []
    if (!word.startsWith('-') || word === '-') operands += 1
    else if (word.startsWith('--')) {
      if (isLong(printer.longValued, name)) at += value === undefined ? 1 : 0
      else if (!isLong(printer.long, name) || value !== undefined) return null
      seen.add(`--${name}`)
    } else {
      const letters = [...word.slice(1)]
      const valuedAt = letters.findIndex((letter) => printer.valued?.includes(letter))
      const plain = valuedAt < 0 ? letters : letters.slice(0, valuedAt)
      if (plain.some((letter) => !printer.flags.includes(letter))) return null
      for (const letter of letters.slice(0, plain.length + 1)) seen.add(letter)
      // Treats `-i` of lsof as having its value in the same word, or none.
      if (valuedAt === letters.length - 1 && letters[valuedAt] !== 'i') at += 1
    }
  }
  return operands > printer.maxOperands ? null : seen
}

/** Output of each directive of date with default padding: digits, and names of the C locale. */
const directives: Readonly<Record<string, string>> = {
  Y: '2026',
  y: '26',
  m: '01',
  d: '02',
  H: '03',
  M: '04',
  S: '05',
  F: '2026-01-02',
  T: '03:04:05',
  R: '03:04',
  j: '002',
  s: '1767323045',
  N: '000000000',
  u: '5',
  V: '01',
  b: 'Jan',
  B: 'January',
  a: 'Fri',
  A: 'Friday',
  z: '+0000',
}

/**
 * Returns the output of `date` at one moment: digits and separators. Literal letters could form any
 * word, so a format may only have directives and `-_:.T`.
 */
export function dateOutputOf(words: readonly string[], isQuoted: boolean): string | null {
  let format: string | null = null
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at]!
    if (word === '-d' || word === '--date') at += 1
    else if (/^(?:-u|--utc|--universal|--date=.*)$/s.test(word)) continue
    else if (word.startsWith('+') && format === null) format = word.slice(1)
    else return null
  }
  // Allows a `Z` after digits, which means UTC.
  if (
    format === null ||
    !/^(?:%[A-Za-z]|[-_:.T ])+(?<=%[A-Za-z])Z?$|^(?:%[A-Za-z]|[-_:.T ])+$/.test(format) ||
    (!isQuoted && format.includes(' '))
  )
    return null
  let printed = ''
  for (const [part] of format.matchAll(/%[A-Za-z]|./g)) {
    const value = part.length === 1 ? part : directives[part.charAt(1)]
    if (value === undefined) return null
    printed += value
  }
  return printed.startsWith('-') ? null : printed
}

/**
 * Matches tests of `find` and two plain ways to print. Other words run, write, or print by a
 * template.
 */
const findWords =
  /^(?:-(?:name|iname|path|ipath|type|mtime|mmin|ctime|cmin|atime|amin|size|newer|newer[aBcmt]{2}|maxdepth|mindepth|user|group|uid|gid|perm|links|inum|empty|readable|executable|writable|print|print0|xdev|mount|depth|not|a|and|o|or|true|false|prune|regex|iregex|nouser|nogroup|daystart|noleaf|H|P)|[!(),])$/

/** Whether `find` only prints the paths that it finds. */
export function printsPathsAlone(words: readonly Word[]): boolean {
  return words
    .slice(1)
    .every(({ text }) => !text.startsWith('-') || /^-\d+[A-Za-z]?$/.test(text) || findWords.test(text))
}

/**
 * Returns the words of a plain command; null if one is not known exactly. Errors may be discarded.
 */
export function literalWordsOf({ name, prefix, suffix }: Command): string[] | null {
  if (!name || name.parts || prefix.length > 0) return null
  const texts = [name.value]
  for (const part of suffix) {
    if (part.type === 'Redirect' && isQuiet(part)) continue
    if (part.type !== 'Word' || !isLiteral(part)) return null
    texts.push(part.value)
  }
  return texts
}

const isQuiet = ({ operator, descriptor, target }: Redirect): boolean =>
  operator === '>' && descriptor?.type === 'FileDescriptor' && descriptor.value === 2 && target?.value === '/dev/null'

const isLiteral = ({ parts }: BashWord): boolean => parts === undefined || parts.every(isKnownPart)
const isKnownPart = (part: WordPart): boolean =>
  part.type === 'Literal' ||
  part.type === 'SingleQuoted' ||
  (part.type === 'DoubleQuoted' && part.parts.every(({ type }) => type === 'Literal'))

/** Most words of a loop that is written out. */
const maxWords = 16

/**
 * Returns the exact output of `echo` and `seq`, if it has only characters that no shell reads
 * again; null if it is uncertain.
 */
export function exactWordsOf(words: readonly string[]): string[] | null {
  const [name, ...operands] = words
  if (name === 'echo') {
    const said = operands[0] === '-n' ? operands.slice(1) : operands
    const fields = said.flatMap((text) => text.split(/[ \t\n]+/)).filter((text) => text !== '')
    return said[0]?.startsWith('-') || fields.some((text) => !/^[\w./:@%+=,-]+$/.test(text)) ? null : fields
  }
  if (
    name !== 'seq' ||
    operands.length === 0 ||
    operands.length > 2 ||
    operands.some((text) => !/^\d{1,6}$/.test(text))
  )
    return null
  const [first, last] = operands.length === 1 ? [1, Number(operands[0])] : operands.map(Number)
  const count = last! - first! + 1
  return count > maxWords ? null : Array.from({ length: Math.max(0, count) }, (_, at) => String(first! + at))
}
