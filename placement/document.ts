import { isUtf8 } from 'node:buffer'
import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
} from 'yaml'
import { type Flaw, InvalidProblemError } from './certificate.ts'
import { findJsonFault, findKeyFaults } from './json-faults.ts'

/**
 * Reads untrusted bytes as plain data, or finds the error and its position. Bytes must be UTF-8,
 * then JSON or YAML with only one possible reading, and no larger than a cluster. The caller limits
 * the time (`cli/placement/read.ts`), because the YAML parser is slow and cannot be interrupted.
 */

const maxFlaws = 10
/** The deepest nesting of a document: more than a file needs, and far below a stack's limit. */
const maxDepth = 64
/**
 * The most values of a document with expanded anchors: several times what the largest cluster
 * needs.
 */
const maxValues = 2_000_000

/**
 * Parses the content of a file. `name` decides between YAML and JSON if both are possible. Throws
 * InvalidProblemError.
 */
export function parseFile(bytes: Uint8Array, name: string): unknown {
  const text = decodeUtf8(bytes)
  // Reads JSON separately: the YAML parser reads JSON too, but slowly if the file is large.
  if (!/^\s*[{[]/.test(text)) return parseYaml(text)
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  // Never reads a text that is meant as JSON as YAML. YAML may begin with a brace too.
  const isJson = /\.json$/i.test(name) || (!/\.ya?ml$/i.test(name) && /^\s*[{[]\s*["{[\]}]/.test(text))
  if (isJson) throw new InvalidProblemError([findJsonFault(text)])
  return parseYaml(text)
}

/**
 * Decodes the text of a document. Throws InvalidProblemError for bytes that are not UTF-8, because
 * a replaced byte could name another VM.
 */
export function decodeUtf8(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new InvalidProblemError([findUtf8Flaw(bytes)])
  return new TextDecoder().decode(bytes)
}

/** Finds the first byte of a document that is not UTF-8, and its line, both counted from 1. */
export function findUtf8Flaw(bytes: Uint8Array): Flaw {
  // Searches the longest valid part of the bytes, at whose end a character may be cut.
  let [sound, broken] = [0, bytes.length]
  while (broken - sound > 1) {
    const middle = (sound + broken) >> 1
    if (beginsAsUtf8(bytes.subarray(0, middle))) sound = middle
    else broken = middle
  }
  const line = 1 + bytes.subarray(0, sound).reduce((count, byte) => count + (byte === 0x0a ? 1 : 0), 0)
  return { path: `line ${line}`, message: `byte ${broken} is not UTF-8` }
}

function beginsAsUtf8(part: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(part, { stream: true })
    return true
  } catch {
    return false
  }
}

/**
 * Parses JSON that has only one reading. Throws SyntaxError for invalid JSON. Throws
 * InvalidProblemError, with paths, for repeated keys, of which `JSON.parse` would keep the last,
 * and for halves of a surrogate pair, which look alike when printed.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  requireNone(findKeyFaults(text, { maxFlaws, maxDepth }))
  // Searches only a text with escapes: otherwise UTF-8 cannot contain half of a surrogate pair.
  if (/\\u[dD][89a-fA-F]/.test(text)) requireNone(findUnreadable(value))
  return value
}

function requireNone(flaws: Flaw[]): void {
  if (flaws.length > 0) throw new InvalidProblemError(flaws.slice(0, maxFlaws))
}

function parseYaml(text: string): unknown {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false })
  const [fault] = [...document.errors, ...document.warnings]
  if (fault) {
    const { line, col } = lines.linePos(fault.pos[0])
    const message = yamlWords[fault.code] ?? 'this is not readable YAML'
    throw new InvalidProblemError([{ path: `line ${line}, column ${col}`, message }])
  }
  requireNone(findYamlFlaws(document, lines))
  const value = toPlainData(document)
  requireNone(findUnreadable(value))
  return value
}

function toPlainData(document: Document.Parsed): unknown {
  try {
    // Allows any number of aliases: their values are shared and not copied, and the search for
    // unreadable values counts them.
    return document.toJS({ maxAliasCount: -1 })
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error
    throw new InvalidProblemError([{ path: 'the problem', message: yamlWords.BAD_ALIAS as string }])
  }
}

/** Descriptions of the YAML parser's errors. */
const yamlWords: Record<string, string> = {
  ALIAS_PROPS: 'a reference (*name) takes neither an anchor nor a tag',
  BAD_ALIAS: 'a reference (*name) names no earlier anchor',
  BAD_DIRECTIVE: 'this directive (%) is not known',
  BAD_DQ_ESCAPE: 'a text in double quotes has an escape that YAML does not know',
  BAD_INDENT: 'this line is not indented like the lines around it',
  BAD_SCALAR_START: 'a text that begins with this sign needs quotes in YAML',
  BLOCK_AS_IMPLICIT_KEY: 'a list or map cannot begin here: a line break or a comma may be missing',
  BLOCK_IN_FLOW: 'within brackets, write a list as [a, b] and a map as {a: b}',
  KEY_OVER_1024_CHARS: 'a key is longer than 1,024 characters',
  MISSING_CHAR: 'a quote, bracket, comma or colon is missing',
  MULTILINE_IMPLICIT_KEY: 'a key spans more than one line: a colon or a comma may be missing',
  MULTIPLE_ANCHORS: 'a value has two anchors (&name)',
  MULTIPLE_DOCS: 'a second document begins here (---): give only one document',
  MULTIPLE_TAGS: 'a value has two tags (!name)',
  RESOURCE_EXHAUSTION: `it is nested deeper than ${maxDepth} levels`,
  TAB_AS_INDENT: 'indent YAML with spaces, not with tabs',
  TAG_RESOLVE_FAILED: 'this tag (!name) is not known: leave it out',
  UNEXPECTED_TOKEN: 'this text is not allowed here',
}

/**
 * Finds repeated keys, keys that are not text, and too deep nesting in YAML. `1` and `"1"` become
 * one key. Uses a loop instead of recursion, to limit the depth.
 */
function findYamlFlaws(document: Document.Parsed, lines: LineCounter): Flaw[] {
  const flaws: Flaw[] = []
  const open: { node: unknown; depth: number }[] = [{ node: document.contents, depth: 0 }]
  const tell = (node: unknown, message: string) => {
    const { line, col } = lines.linePos((node as Node).range?.[0] ?? 0)
    flaws.push({ path: `line ${line}, column ${col}`, message })
  }
  for (let at = open.pop(); at && flaws.length < maxFlaws; at = open.pop()) {
    const { node, depth } = at
    if (!isCollection(node)) continue
    if (depth > maxDepth) {
      tell(node, `it is nested deeper than ${maxDepth} levels`)
      break
    }
    const keys = new Set<string>()
    for (const item of node.items) {
      if (isPair(item) && isMap(node)) {
        const key = isScalar(item.key) ? String(item.key.value) : null
        if (isAlias(item.key) || isCollection(item.key)) tell(item.key, 'a key must be a text')
        else if (key === '<<') tell(item.key, 'merge keys (<<) are not supported: write the fields out')
        else if (key !== null && keys.has(key)) tell(item.key, `the key ${key.slice(0, 60)} is given twice`)
        if (key !== null) keys.add(key)
      }
    }
    for (const item of node.items.toReversed()) open.push({ node: isPair(item) ? item.value : item, depth: depth + 1 })
  }
  return flaws
}

type Place = { key: string; parent: Place | null }

/**
 * Finds errors in plain data: halves of a surrogate pair, and more levels or values than any
 * cluster needs. Uses a loop instead of recursion, to limit both.
 */
function findUnreadable(root: unknown): Flaw[] {
  const flaws: Flaw[] = []
  const open: { value: unknown; depth: number; place: Place | null }[] = [{ value: root, depth: 0, place: null }]
  let seen = 0
  for (let at = open.pop(); at && flaws.length < maxFlaws; at = open.pop()) {
    const { value, depth, place } = at
    if (typeof value === 'string' && !value.isWellFormed())
      flaws.push({ path: pathOf(place), message: 'it has half of a surrogate pair: write whole characters' })
    if (value === null || typeof value !== 'object') continue
    const entries = Object.entries(value)
    seen += entries.length
    if (depth >= maxDepth) return [{ path: pathOf(place), message: `it is nested deeper than ${maxDepth} levels` }]
    if (seen > maxValues)
      return [{ path: 'the problem', message: `it has more than ${maxValues} values, with anchors written out` }]
    for (const [key, entry] of entries.toReversed()) {
      const inner = { key, parent: place }
      if (!key.isWellFormed()) flaws.push({ path: pathOf(place), message: 'a key has half of a surrogate pair' })
      if (typeof entry === 'string' || (entry !== null && typeof entry === 'object'))
        open.push({ value: entry, depth: depth + 1, place: inner })
    }
  }
  return flaws
}

function pathOf(place: Place | null): string {
  const keys: string[] = []
  for (let at = place; at; at = at.parent) keys.unshift(at.key.slice(0, 60))
  return keys.slice(0, 8).join('.') || 'the problem'
}
