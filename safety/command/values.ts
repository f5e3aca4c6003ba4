import type { CommandCode, Finding } from './analysis.ts'
import type { ValueKind } from './grammar.ts'
import { knownAs, nameKey } from './known-names.ts'
import { languages } from './languages.ts'
import { type CommandReading, hasOption, type OptionValue } from './options.ts'
import { whyNotOwn } from './own-files.ts'
import type { Word } from './parse.ts'
import { ownFinding, pathFinding } from './paths.ts'
import { addressOf, findRequestProblem, hostOf, isKnownHost, isMetadata } from './remote-exec-wrappers.ts'
import { attributesOnly } from './secret-paths.ts'

/** Checks each value of a command against its kind. */

type ValueContext = {
  name: string
  directories: readonly string[]
  knownHosts: ReadonlySet<string>
  knownNames: ReadonlySet<string>
  /** The names in the text that are among `knownNames`. */
  names: Set<string>
  secrets: readonly string[]
}
type ValuePlace = ValueContext & {
  /** Whether the program reports on files without printing their contents. */
  measures: boolean
}

export function valueFindings(reading: CommandReading, place: ValueContext): Finding[] {
  const findings: Finding[] = []
  const tree = readsTree(reading)
  const here: ValuePlace = {
    name: place.name,
    knownHosts: place.knownHosts,
    knownNames: place.knownNames,
    names: place.names,
    secrets: place.secrets,
    directories: directoriesOf(reading, place),
    measures: attributesOnly.has(place.name) || measures(reading),
  }
  for (const value of joinParameters(reading)) {
    const found = valueFinding(value, tree, here)
    if (found) findings.push(found)
  }
  if (
    tree &&
    !reading.values.some(({ kind, word }) => kind === 'file' || (kind === 'revision' && isPathOf(word.text)))
  ) {
    findings.push(finding('SENSITIVE_PATH', 'reads everything below the working directory', null))
  }
  return findings
}

/** Lists the directories in which the command may run, and those that its arguments name. */
function directoriesOf({ values }: CommandReading, { directories }: ValueContext): readonly string[] {
  const entered = values.filter(({ kind }) => kind === 'directory')
  return entered.length === 0 ? directories : [...directories, ...entered.map(({ word }) => word.text)]
}

function measures(reading: CommandReading): boolean {
  const has = (options: readonly string[]) => reading.found.some(({ name }) => options.includes(name))
  return reading.grammars.some(
    ({ measures }) => measures && (!measures.by || has(measures.by)) && !has(measures.unless ?? []),
  )
}

/** Whether the text is a path and not a revision, such as `HEAD~1` or `main..topic`. */
const isPathOf = (text: string): boolean =>
  /[^/]\.[a-z][a-z0-9]{0,9}$/i.test(text) || text.includes(':') || text.startsWith('/')

function readsTree(reading: CommandReading): boolean {
  const isNamed = (option: string) => hasOption(reading, option)
  return reading.grammars.some(({ recursive }) => {
    if (recursive === undefined || recursive === true) return recursive === true
    if ('unless' in recursive) return recursive.by.some(isNamed) || !recursive.unless.some(isNamed)
    return recursive.some(isNamed)
  })
}

/** The reason for requiring approval of a word with pattern characters where no path belongs. */
export const isPattern = 'is a pattern: quote it or spell it out'

const finding = (code: CommandCode, why: string, word: Word | null): Finding => ({
  code,
  reason: word ? `${word.text} ${why}` : why,
  token: word?.text ?? null,
})

function valueFinding({ kind, word, repeats }: OptionValue, tree: boolean, place: ValuePlace): Finding | null {
  const mayGlob =
    (kind === 'file' || kind === 'revision') && repeats && word.pattern !== null && !/^[*?[]/.test(word.pattern)
  // Accepts a certificate that `find` reaches, whose path begins with the root of the find.
  const isFound =
    kind === 'certificate' &&
    word.found === true &&
    whyNotOwn(kind, word.text.replaceAll('*', 'x'), place.name) === null
  if (isFound) return null
  if (!word.literal && !mayGlob && !isOneWord(kind, word)) {
    return finding('ARGUMENT', word.pattern === null ? 'is not known before it runs' : isPattern, word)
  }
  return findingOfKind(kind, word, tree, place)
}

function findingOfKind(kind: OptionValue['kind'], word: Word, tree: boolean, place: ValuePlace): Finding | null {
  const { text } = word
  switch (kind) {
    case 'text':
      return textFinding(word, place)
    case 'number':
      return /^[+-]?(?:\d+(?:\.\d+)?|\.\d+)[A-Za-z%]{0,3}$/.test(text)
        ? null
        : { ...finding('ARGUMENT', 'is not a number', word), isRefused: true }
    case 'count':
      return /^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= 1_000
        ? null
        : unbounded('is not a number from 1 to 1000', word)
    case 'ago':
      return /^\d+(?:\.\d+)?(?:ms|s|m|h)?$/.test(text) ? null : unbounded('may be a time in the future', word)
    case 'wait':
      return waitsAtMost(text, maxWaitSeconds) ? null : unbounded(`is not a time of at most ${maxWaitSeconds} s`, word)
    case 'name':
      return isName(text) ? null : finding('ARGUMENT', 'is not a plain name', word)
    case 'file':
      return text === '-' ? null : (fetched(word, place) ?? sensitive(word, tree, place))
    case 'directory':
      return fetched(word, place) ?? sensitive(word, false, place)
    case 'config':
      // Requires a file below /etc: a program quotes in an error what is not a settings file.
      return /^\/etc\/[\w./-]+$/.test(text) && !text.includes('..')
        ? sensitive(word, tree, place)
        : finding('ARGUMENT', 'reads settings from outside /etc', word)
    case 'revision':
      return revisionFinding(word, tree, place)
    case 'endpoint':
      return endpointFinding(word, tree, place)
    case 'sink':
      return text === '/dev/null' || text === '-' ? null : finding('ARGUMENT', 'would be written', word)
    case 'host':
      return hostFinding(word, place)
    case 'place':
      return placeFinding(word, place)
    case 'request':
      return requestFinding(text, word)
    case 'parameter':
    case 'encoded':
      // Refuses a word without `name=value`, which may be a file, and any word without -G, which is
      // sent.
      return finding('ARGUMENT', 'is sent, or is not a plain name=value after -G with one address', word)
    case 'header':
      return headerFinding(text, word, place)
    case 'method':
      return /^(?:GET|HEAD|OPTIONS)$/.test(text)
        ? null
        : finding('ARGUMENT', 'is a request that may change something', word)
    case 'resolved':
      return resolvedFinding(word, place)
    case 'credential':
    case 'socket':
    case 'settings':
    case 'compose':
    case 'certificate':
    case 'runtime': {
      const why = whyNotOwn(kind, text, place.name)
      return why === null ? null : finding('ARGUMENT', why, word)
    }
    case 'urls':
      return text.split(',').reduce<Finding | null>((found, each) => found ?? urlFinding(each, word, place), null)
    case 'url':
      return urlFinding(text, word, place)
    default:
      return languageFinding(kind, word)
  }
}

function textFinding(word: Word, place: ValuePlace): Finding | null {
  const { text } = word
  // Refuses a wide format: `stat -c %1000000000n`.
  if (formats.has(place.name) && /%[-_+ #0^'<(]*\d{5}/.test(text))
    return unbounded('prints more than 10000 characters', word)
  // Refuses a signature, which another program checks, and wide columns, whose widths are numbers
  // in brackets.
  if (place.name === 'git' && /%G|signature/.test(text)) return finding('ARGUMENT', 'starts another program', word)
  if (place.name === 'git' && /%.*\(\d*,?\d{5}/.test(text)) return unbounded('prints more than 10000 characters', word)
  return looksLikePath(text) && !text.startsWith('/dev') ? sensitive(word, false, place) : null
}

function hostFinding(word: Word, place: ValuePlace): Finding | null {
  // Accepts the directory of the server's own socket.
  if (ofPostgres.has(place.name) && /^\/(?:var\/)?run\/postgresql$/.test(word.text)) return null
  const host = hostOf(word.text.replace(/^@/, ''))
  return host && isKnownHost(host, place.knownHosts)
    ? null
    : finding('EXFILTRATION', 'is a host that was not looked up', word)
}

function placeFinding(word: Word, place: ValuePlace): Finding | null {
  const entry = knownAs(place.knownNames, nameKey('bucket', '', word.text), word.text)
  if (entry === null) return finding('UNKNOWN_NAME', 'is a name that was not looked up', word)
  place.names.add(entry)
  return null
}

function resolvedFinding(word: Word, { knownHosts }: ValuePlace): Finding | null {
  const [, host = '', address = ''] = /^\+?([\w.-]+):\d{1,5}:(\[?[\da-f.:]+\]?)$/i.exec(word.text) ?? []
  return isKnownHost(host, knownHosts) && isKnownHost(address, knownHosts)
    ? null
    : finding('EXFILTRATION', 'leads to a host that was not looked up', word)
}

const ofPostgres: ReadonlySet<string> = new Set(['psql', 'pg_isready'])

/** Matches headers that only shape an answer, by name and the alphabet of their values. */
const plainHeaders =
  /^(?:accept|accept-encoding|accept-language|content-type|cache-control|pragma|connection|x-forwarded-proto|x-forwarded-ssl|range): ?[\w/*+.;=, -]{1,100}$/i

function headerFinding(text: string, word: Word, place: ValuePlace): Finding | null {
  const host = /^host: ?([^\s:]+)(?::\d{1,5})?$/i.exec(text)?.[1]
  if (host !== undefined)
    return isKnownHost(host, place.knownHosts)
      ? null
      : finding('EXFILTRATION', 'is a host that was not looked up', word)
  return plainHeaders.test(text) ? null : finding('ARGUMENT', 'is a header that may send any data', word)
}

const unbounded = (why: string, word: Word): Finding => finding('UNBOUNDED', why, word)

const maxWaitSeconds = 600
const formats = new Set(['find', 'stat', 'date', 'seq', 'git', 'printf'])
const unitSeconds: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600 }

/** Reads `30`, `30s`, `5m`. Refuses zero, which most programs read as no limit. */
function waitsAtMost(text: string, maxSeconds: number): boolean {
  const [, number, unit = ''] = /^(\d{1,6})([smh]?)$/.exec(text) ?? []
  const seconds = Number(number) * (unitSeconds[unit] ?? Number.NaN)
  return seconds > 0 && seconds <= maxSeconds
}

/**
 * Whether the shell can make only one word without effect from a pattern: `grep [n]ginx` finds a
 * file of that name or none, and no directory `http:` or `localhost:8080` exists for `?pretty`.
 */
export function isOneWord(kind: ValueKind, { pattern }: Word): boolean {
  if (pattern === null) return false
  if (kind === 'text') return !/[*?[]/.test(pattern.replace(/\[[\w.]\]/g, '')) && !/^\[?[-+@/~.]/.test(pattern)
  if (kind === 'fields:kubernetes') return pattern.startsWith('custom-columns=') || pattern.startsWith('jsonpath=')
  return kind === 'url' && /^[^*?[]+:[^*?[]*\/[^*?[]*\?[^*?[]*$/.test(pattern)
}

function languageFinding(kind: ValueKind, word: Word): Finding | null {
  const why = languages.get(kind)
  if (!why) return finding('INTERNAL', `is of a kind without a rule: ${kind}`, word)
  const reason = why(word.text)
  return reason === null ? null : finding('LANGUAGE', `does more than read: ${reason}`, word)
}

/**
 * Whether the text is the name of a unit, container or process, or `deploy/web`. A name begins with
 * a letter or digit, so it is neither an option nor a path.
 */
const isName = (text: string): boolean => /^[\w@][\w.@:+,=\\-]*(?:\/[\w.@:+-]+)?$/.test(text) && !text.includes('..')

/**
 * Whether a word looks like a path. Every such word is compared with the list, because programs
 * take files in different places.
 */
const looksLikePath = (text: string): boolean => /^[@<]?(?:[/~]|\.\.?\/)\S*$/.test(text)

function urlFinding(text: string, word: Word, place: ValuePlace): Finding | null {
  const address = addressOf(text)
  if (!address || isMetadata(address.host) || !isKnownHost(address.host, place.knownHosts))
    return finding('EXFILTRATION', 'is an address of a host that was not looked up', word)
  return requestFinding(address.target, word)
}

function requestFinding(target: string, word: Word): Finding | null {
  const why = findRequestProblem(target)
  return why === null ? null : finding('ARGUMENT', why, word)
}

/**
 * Returns the values with the parameters of `-G` in the address; unchanged if the query is unknown.
 */
function joinParameters(reading: CommandReading): readonly OptionValue[] {
  const { values } = reading
  const parameters = values.filter(({ kind }) => kind === 'parameter' || kind === 'encoded')
  const addresses = values.filter(({ kind }) => kind === 'url')
  const [address] = addresses
  if (
    parameters.length === 0 ||
    !address ||
    addresses.length > 1 ||
    !['-G', '--get'].some((name) => hasOption(reading, name))
  )
    return values
  const added = parameters.map(encodeParameter)
  if (added.includes(null) || !address.word.literal || address.word.text.includes('#')) return values
  const text = `${address.word.text}${address.word.text.includes('?') ? '&' : '?'}${added.join('&')}`
  const others = values.filter((value) => value !== address && !parameters.includes(value))
  return [...others, { ...address, word: { ...address.word, text } }]
}

/** Encodes `name=value` for a query. */
function encodeParameter({ kind, word }: OptionValue): string | null {
  const [, name, value = ''] = (word.literal && /^([\w[\]]+)=(.*)$/s.exec(word.text)) || []
  if (name === undefined) return null
  if (kind === 'encoded') return `${name}=${encodeURIComponent(value.toWellFormed())}`
  return /[#\s]/.test(value) ? null : `${name}=${value.replace(/[{}"<>|^`\\]/g, encodeURIComponent)}`
}

/**
 * Matches names that languages open by their own rules: `x|`, `|x`, `>x` are a program or a file
 * that is written. No ordinary file has such a name.
 */
const opensMore = /^\s*[|<>+]|\|\s*$/

/**
 * Refuses the address of a file, which some programs accept: `http://…`, `host:path`. Programs that
 * only measure do not open such addresses.
 */
function fetched(word: Word, { measures }: ValuePlace): Finding | null {
  const isAddress = measures ? /^[a-z][a-z0-9+.-]*:\/\//i : /^(?:[a-z][a-z0-9+.-]*:\/\/|[^/:]+:|\|)/i
  if (opensMore.test(word.text.replace(/^<(?=[\w./])/, '')))
    return finding('LANGUAGE', 'may be a program or a file that is written', word)
  return isAddress.test(word.text) ? finding('EXFILTRATION', 'may be an address', word) : null
}

/**
 * Checks an internet address as lsof(8) writes it: `4TCP@host:port`. A word with a slash is a file.
 */
function endpointFinding(word: Word, tree: boolean, place: ValuePlace): Finding | null {
  const found = /^[46]?(?:tcp|udp|udplite)?(?:@(\[[0-9a-f:]+\]|[^:/]+))?(?::[\w,-]+)?$/i.exec(word.text)
  if (!found || word.text === '')
    return word.text.includes('@')
      ? finding('EXFILTRATION', 'may be a host', word)
      : valueFinding({ kind: 'file', word, repeats: true }, tree, place)
  const host = found[1]
  if (host === undefined || /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]+\])$/i.test(host)) return null
  return isKnownHost(host, place.knownHosts) ? null : finding('EXFILTRATION', 'is a host that was not looked up', word)
}

/**
 * Checks a revision, a path, or `revision:path` of a repository. The content of a revision is as
 * secret as the original file.
 */
function revisionFinding(word: Word, tree: boolean, place: ValuePlace): Finding | null {
  const { text } = word
  const at = text.indexOf(':')
  if (/^\^?(?:HEAD|FETCH_HEAD|ORIG_HEAD|[0-9a-f]{7,40}|[\w./-]+(?:\.{2,3}|[~^]|@\{)[\w./~^@{}-]*)[~^\d]*$/.test(text))
    return null
  if (at < 0) return valueFinding({ kind: 'file', word, repeats: true }, tree, place)
  if (text.startsWith(':(') || /^:[!^/]/.test(text)) return finding('ARGUMENT', 'is a pattern of paths', word)
  const path = text.slice(text.lastIndexOf(':') + 1)
  return path === '' || path.endsWith('/') ? null : sensitive({ ...word, text: path }, false, place)
}

function sensitive(word: Word, tree: boolean, { measures, directories, secrets }: ValuePlace): Finding | null {
  const bare = word.text.replace(/^[@<]/, '')
  const path = measures && !word.found ? listed(word) : bare === word.text ? word : { ...word, text: bare }
  const reading = measures ? 'measures' : tree ? 'prints tree' : 'prints'
  const found = pathFinding(path, directories, reading) ?? ownFinding(path, directories, { tree, secrets })
  if (found === null) return null
  // Accepts a device for a program that reports on it without reading it.
  if (measures && /^\/+dev\b/.test(bare) && !bare.includes('..')) return null
  if (found === 'fetches') return finding('EXFILTRATION', 'may contact the host that it names', word)
  if (found === 'endless') return finding('UNBOUNDED', 'has no end', word)
  return finding('SENSITIVE_PATH', found === 'secret' ? 'is a path that holds secrets' : 'has secrets below it', word)
}

/**
 * Replaces `du /var/log/*` by its directory, because the program reports on the entries of the
 * directory.
 */
function listed(word: Word): Word {
  const directory = word.pattern?.replace(/\/\*$/, '')
  if (!directory || directory === word.pattern) return word
  return { ...word, text: directory, pattern: /[*?[]/.test(directory) ? directory : null }
}
