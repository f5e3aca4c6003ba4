import type { ValueKind } from './grammar.ts'
import { hostOf, hostOfUrl, isKnownHost } from './hosts.ts'
import { languages } from './languages.ts'
import type { Reading, Value } from './options.ts'
import type { Word } from './parse.ts'
import { ownFinding, pathFinding } from './paths.ts'
import { attributesOnly } from './sensitive.ts'
import type { CommandCode, Finding } from './verdict.ts'

/** Holds each value of a command against what its kind allows. */

type Place = {
  name: string
  directories: readonly string[]
  knownHosts: ReadonlySet<string>
  secrets: readonly string[]
}

export function valueFindings(reading: Reading, place: Place): Finding[] {
  const findings: Finding[] = []
  const tree = readsTree(reading)
  for (const value of reading.values) {
    const found = valueFinding(value, tree, place)
    if (found) findings.push(found)
  }
  if (tree && !reading.values.some(({ kind }) => kind === 'file')) {
    findings.push(finding('SENSITIVE_PATH', 'reads everything below the working directory', null))
  }
  return findings
}

function readsTree(reading: Reading): boolean {
  const named = new Set(reading.found.map(({ name }) => name))
  return reading.grammars.some(
    ({ recursive }) => recursive === true || (recursive?.some((option) => named.has(option)) ?? false),
  )
}

const finding = (code: CommandCode, why: string, word: Word | null): Finding => ({
  code,
  reason: word ? `${word.text} ${why}` : why,
  token: word?.text ?? null,
})

function valueFinding({ kind, word, repeats }: Value, tree: boolean, place: Place): Finding | null {
  const mayGlob = kind === 'file' && repeats && word.pattern !== null && !/^[*?[]/.test(word.pattern)
  if (!word.literal && !mayGlob) {
    return finding(
      'ARGUMENT',
      word.pattern === null ? 'is not known before it runs' : 'is a pattern: quote it or spell it out',
      word,
    )
  }
  const { text } = word
  switch (kind) {
    case 'text':
      return looksLikePath(text) && !text.startsWith('/dev') ? sensitive(word, false, place) : null
    case 'number':
      return /^[+-]?(?:\d+(?:\.\d+)?|\.\d+)[A-Za-z%]{0,3}$/.test(text)
        ? null
        : finding('ARGUMENT', 'is not a number', word)
    case 'name':
      return isName(text) ? null : finding('ARGUMENT', 'is not a plain name', word)
    case 'file':
      return text === '-' ? null : sensitive(word, tree, place)
    case 'sink':
      return text === '/dev/null' || text === '-' ? null : finding('ARGUMENT', 'would be written', word)
    case 'host': {
      const host = hostOf(text.replace(/^@/, ''))
      return host && isKnownHost(host, place.knownHosts)
        ? null
        : finding('EXFILTRATION', 'is a host that was not looked up', word)
    }
    case 'url': {
      const host = hostOfUrl(text)
      return host && isKnownHost(host, place.knownHosts)
        ? null
        : finding('EXFILTRATION', 'is an address of a host that was not looked up', word)
    }
    default:
      return languageFinding(kind, word)
  }
}

function languageFinding(kind: ValueKind, word: Word): Finding | null {
  const why = languages.get(kind)
  if (!why) return finding('INTERNAL', `is of a kind without a rule: ${kind}`, word)
  const reason = why(word.text)
  return reason === null ? null : finding('LANGUAGE', `does more than look: ${reason}`, word)
}

/** A unit, container or process; `deploy/web` too. It begins with a letter or digit, so it is neither option nor path. */
const isName = (text: string): boolean => /^[\w@][\w.@:+,=\\-]*(?:\/[\w.@:+-]+)?$/.test(text) && !text.includes('..')

/** Programs differ in where they take a file, so a word that is plainly a path is held against the list wherever it stands. */
const looksLikePath = (text: string): boolean => /^[@<]?(?:[/~]|\.\.?\/)\S*$/.test(text)

function sensitive(word: Word, tree: boolean, { name, directories, secrets }: Place): Finding | null {
  const bare = word.text.replace(/^[@<]/, '')
  const path = attributesOnly.has(name) ? listed(word) : bare === word.text ? word : { ...word, text: bare }
  const found = pathFinding(path, directories, tree) ?? ownFinding(path, directories, { tree, secrets })
  if (found === null) return null
  // Such a program tells about a device without reading it.
  if (attributesOnly.has(name) && /^\/+dev\b/.test(bare) && !bare.includes('..')) return null
  if (found === 'endless') return finding('UNBOUNDED', 'has no end', word)
  return finding('SENSITIVE_PATH', found === 'secret' ? 'is a path that holds secrets' : 'has secrets below it', word)
}

/** `du /var/log/*` tells about the entries of a directory, so it is the directory that counts. */
function listed(word: Word): Word {
  const directory = word.pattern?.replace(/\/\*$/, '')
  if (!directory || directory === word.pattern) return word
  return { ...word, text: directory, pattern: /[*?[]/.test(directory) ? directory : null }
}
