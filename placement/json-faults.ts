import type { Flaw } from './certificate.ts'

/**
 * Finds facts that a JSON parser does not report: which keys are repeated, and where a text stops
 * being JSON. Loops over tokens, because untrusted text must not exhaust a stack.
 */

type Token = { kind: 'text' | 'word' | 'open text' | 'sign'; at: number; end: number }

const word = /[^\s{}[\],:"]+/y

function* readTokens(text: string): Generator<Token> {
  for (let at = 0; at < text.length; ) {
    const sign = text[at] as string
    if (sign === '"') {
      const end = findTextEnd(text, at)
      yield { kind: end < 0 ? 'open text' : 'text', at, end: end < 0 ? text.length : end }
      at = end < 0 ? text.length : end
    } else if ('{}[],:'.includes(sign)) yield { kind: 'sign', at, end: ++at }
    else if (/\s/.test(sign)) at += 1
    else {
      word.lastIndex = at
      const found = word.exec(text)?.[0] ?? sign
      yield { kind: 'word', at, end: at + found.length }
      at += found.length
    }
  }
}

/** Returns the position after the quote that ends a text. -1 if no quote ends it. */
function findTextEnd(text: string, at: number): number {
  for (let next = at + 1; next < text.length; next += 1) {
    if (text[next] === '\\') next += 1
    else if (text[next] === '"') return next + 1
  }
  return -1
}

type Level = { keys: Set<string> | null; at: string | number }

/**
 * Finds repeated keys of one object in valid JSON: at most `maxFlaws`, each with its path and the
 * line of the second key. Also finds nesting deeper than `maxDepth`.
 */
export function findKeyFaults(text: string, { maxFlaws, maxDepth }: { maxFlaws: number; maxDepth: number }): Flaw[] {
  const flaws: Flaw[] = []
  const levels: Level[] = []
  let last: Token | null = null
  for (const token of readTokens(text)) {
    const level = levels.at(-1)
    const sign = token.kind === 'sign' ? text[token.at] : ''
    if (sign === '{') levels.push({ keys: new Set(), at: '' })
    else if (sign === '[') levels.push({ keys: null, at: 0 })
    else if (sign === '}' || sign === ']') levels.pop()
    else if (sign === ',' && typeof level?.at === 'number') level.at += 1
    else if (sign === ':' && level?.keys && last) {
      // Decodes the key, because escapes allow several spellings of one key.
      const key = text.slice(last.at + 1, last.end - 1)
      level.at = key.includes('\\') ? (JSON.parse(`"${key}"`) as string) : key
      if (level.keys.has(level.at)) {
        const path = levels.map(({ at }) => at).join('.')
        flaws.push({ path, message: `the key is given twice, again in line ${placeOf(text, last.at).line}` })
        if (flaws.length >= maxFlaws) break
      }
      level.keys.add(level.at)
    }
    if (levels.length > maxDepth) {
      const path = levels
        .slice(0, 8)
        .map(({ at }) => at)
        .join('.')
      return [{ path, message: `it is nested deeper than ${maxDepth} levels` }]
    }
    last = token
  }
  return flaws
}

/** The tokens that may follow at a position in JSON. */
type Wanted = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | ',' | 'nothing'

/** Finds where a text stops being JSON, and why. Takes only texts that `JSON.parse` refused. */
export function findJsonFault(text: string): Flaw {
  const open: ('{' | '[')[] = []
  let wanted: Wanted = 'value'
  for (const token of readTokens(text)) {
    const said = text.slice(token.at, Math.min(token.end, token.at + 40))
    const message = describeFault(token, said, wanted, open.at(-1)) ?? describeTextFault(text, token)
    if (message) return { path: nameOfPlace(text, token.at), message }
    if (said === '{' || said === '[') {
      open.push(said)
      wanted = said === '{' ? 'key or }' : 'value or ]'
    } else if (said === '}' || said === ']') {
      open.pop()
      wanted = open.length > 0 ? ',' : 'nothing'
    } else if (said === ',') wanted = open.at(-1) === '{' ? 'key' : 'value'
    else if (said === ':') wanted = 'value'
    else if (wanted === 'key' || wanted === 'key or }') wanted = ':'
    else wanted = open.length > 0 ? ',' : 'nothing'
  }
  const missing =
    open.length > 0 ? `${open.length} ${open.length === 1 ? 'bracket is' : 'brackets are'} not closed` : ''
  return {
    path: nameOfPlace(text, text.length),
    message: `the JSON ends too early${missing && `: ${missing}`}`,
  }
}

function describeFault({ kind }: Token, said: string, wanted: Wanted, open: '{' | '[' | undefined): string | null {
  if (kind === 'open text') return 'a text that begins here is never closed'
  if (kind === 'word' && /^(\/\/|\/\*|#)/.test(said)) return `JSON has no comments (${said.slice(0, 2)})`
  if (wanted === 'nothing') return 'there is more text after the end of the JSON'
  if (said === '}' || said === ']') {
    if (open !== (said === '}' ? '{' : '[')) return `${said} closes what ${open ?? 'nothing'} opened`
    if (wanted === 'key' || wanted === 'value')
      return wanted === 'value' && open === '{'
        ? `a value is missing before ${said}`
        : `JSON has no comma before ${said}`
    return wanted === ':' ? `a colon and a value are missing before ${said}` : null
  }
  if (wanted === ',') return said === ',' ? null : `a comma is missing before ${said}`
  if (wanted === ':') return said === ':' ? null : `a colon is missing before ${said}`
  if (said === ',' || said === ':') return `${wanted.startsWith('key') ? 'a key' : 'a value'} is missing before ${said}`
  if (wanted.startsWith('key')) return kind === 'text' ? null : `a key needs double quotes in JSON, but this is ${said}`
  return kind === 'word' ? describeWord(said) : null
}

function describeWord(said: string): string | null {
  if (/^(true|false|null|-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?)$/.test(said)) return null
  if (/^[+-]?(nan|inf|infinity)$/i.test(said)) return `JSON has no ${said}: give a number`
  if (/^[+-]?[\d.]/.test(said)) return `${said} is not a number in JSON`
  if (/^(true|false|null|none)$/i.test(said)) return `JSON has only true, false and null, but this is ${said}`
  return `a text needs double quotes in JSON, but this is ${said}`
}

function describeTextFault(text: string, { kind, at, end }: Token): string | null {
  if (kind !== 'text') return null
  for (let next = at + 1; next < end - 1; next += 1) {
    if (text.charCodeAt(next) < 0x20)
      return 'a text has a line break or another control character: write it as an escape, such as \\n'
    if (text[next] !== '\\') continue
    if (!/^(["\\/bfnrt]|u[\da-fA-F]{4})/.test(text.slice(next + 1, next + 6)))
      return `JSON has no escape ${text.slice(next, next + 2)}`
    next += 1
  }
  return null
}

function nameOfPlace(text: string, at: number): string {
  const { line, column } = placeOf(text, at)
  return `line ${line}, column ${column}`
}

/** Returns the line and column of a position in a text, both counted from 1. */
function placeOf(text: string, at: number): { line: number; column: number } {
  const before = text.slice(0, at)
  return { line: before.split('\n').length, column: at - before.lastIndexOf('\n') }
}
