import { redact } from '../../safety/redact.ts'
import { cutText } from '../kind.ts'

/**
 * Hides the values in a statement: people and models may read what a session does, but not whose
 * data it reads. Removes strings, numbers and comments. Where a quote may be read in two ways,
 * removes everything behind the quote.
 */

const maxCharacters = 200
/** Matches an unquoted word as the value of a setting, also in a list of settings. */
const settingValue =
  /(\bset\s+(?:(?:session|local|global|persist|persist_only)\s+)?(?:@@?)?[\w.]+\s*(?::?=|\bto\b)\s*)[^\s;,)]+/gi
const settingList = /(?<=^\s*set\s[^;]*)(:?=\s*)[^\s;,)]+/gi

export const hideLiterals = (sql: string, dialect: 'postgres' | 'mysql'): string =>
  cutText(maskLiterals(sql, dialect), maxCharacters)

/** Hides the values in a statement, without shortening the statement. */
export function maskLiterals(sql: string, dialect: 'postgres' | 'mysql'): string {
  const text = sql.slice(0, 20_000)
  let shown = ''
  let at = 0
  while (at < text.length) {
    const step = readStep(text, at, dialect)
    if (step === null) {
      shown += '…'
      break
    }
    shown += step.shown
    at = step.end
  }
  return redact(
    shown
      .replace(/\s+/g, ' ')
      .replace(/\?(?:\s*,\s*\?)+/g, '?, …')
      .replace(settingValue, '$1?')
      .replace(settingList, '$1?')
      .trim(),
  )
}

/** Names of types that may stand directly before a quote. */
const typed = /^(?:date|time|timestamp|timestamptz|interval|text|jsonb?|uuid|inet)$/i

/** Returns the shown text at this position, and its end. Null if the end is uncertain. */
function readStep(text: string, at: number, dialect: 'postgres' | 'mysql'): Step | null {
  const rest = text.slice(at)
  const isMysql = dialect === 'mysql'
  const comment = readComment(rest, isMysql)
  if (comment === null) return null
  if (comment !== undefined) return step(at, comment, ' ')
  // Matches a dollar quote, which MySQL has too since version 9.
  const tag = /^\$(?:[A-Za-z_\u{80}-\u{10ffff}][\w\u{80}-\u{10ffff}]*)?\$/u.exec(rest)?.[0]
  if (tag !== undefined) {
    const close = text.indexOf(tag, at + tag.length)
    return close < 0 ? null : { shown: '?', end: close + tag.length }
  }
  const opening = /^(?:[EeBbXxNn]|[Uu]&|_\w{1,20}\s*)?'/.exec(rest)?.[0] ?? (isMysql ? /^"/.exec(rest)?.[0] : undefined)
  if (opening !== undefined) return readString(text, at, opening, !isMysql && /^e/i.test(opening))
  const name = (isMysql ? /^`(?:[^`]|``)*`/ : /^"(?:[^"]|"")*"/).exec(rest)?.[0]
  if (name !== undefined) return step(at, name, name)
  const word = /^[A-Za-z_\u{80}-\u{10ffff}][\w$\u{80}-\u{10ffff}]*/u.exec(rest)?.[0]
  // Gives up at any other word directly before a quote, because an earlier quote must be missing.
  if (word !== undefined) return rest[word.length] === "'" && !typed.test(word) ? null : step(at, word, word)
  const parameter = /^\$\d+/.exec(rest)?.[0]
  if (parameter !== undefined) return step(at, parameter, '?')
  const number = /^(?:0x[0-9a-f]+|\d[\d._]*(?:e[+-]?\d+)?)[\p{L}\p{N}_]*/iu.exec(rest)?.[0]
  if (number !== undefined) return step(at, number, '?')
  if (/^["`]/.test(rest)) return null
  const [sign = ''] = rest
  return step(at, sign, sign)
}

/**
 * Reads a comment to its end. Undefined if no comment begins here. Null if it is uncertain where
 * the comment ends, or whether the server executes it.
 */
function readComment(rest: string, isMysql: boolean): string | null | undefined {
  if (!isMysql) {
    if (rest.startsWith('--')) return /^--[^\n\r]*/.exec(rest)?.[0]
    return rest.startsWith('/*') ? readNested(rest) : undefined
  }
  // Requires a space behind two dashes, which MySQL otherwise reads as arithmetic.
  const line = /^(?:#|--(?=[\s\p{Cc}]|$))[^\n]*/u.exec(rest)?.[0]
  if (line !== undefined) return line
  const block = /^\/\*[\s\S]*?(?:\*\/|$)/.exec(rest)?.[0]
  // Gives up at a `/*!` comment with a quote or comment inside, which may reach beyond its end. The
  // server executes such a comment depending on its version.
  return block !== undefined && /^\/\*M?!/i.test(block) && /['"`#]|--|.\/\*/s.test(block) ? null : block
}

/** Reads a comment of PostgreSQL, which may contain further comments. */
function readNested(rest: string): string {
  let depth = 0
  for (const { 0: mark, index } of rest.matchAll(/\/\*|\*\//g)) {
    depth += mark === '/*' ? 1 : -1
    if (depth === 0) return rest.slice(0, index + 2)
  }
  return rest
}

type Step = { shown: string; end: number }

const step = (at: number, text: string, shown: string): Step => ({ shown, end: at + text.length })

/**
 * Reads a string to its end. Null if a backslash precedes a quote, because servers differ in
 * reading it.
 */
function readString(text: string, at: number, opening: string, hasEscapes: boolean): Step | null {
  const quote = opening.at(-1)
  for (let index = at + opening.length; index < text.length; index++) {
    const [here, next] = [text[index], text[index + 1]]
    if (here === '\\') {
      if (hasEscapes) index += 1
      else if (next === quote || next === '\\') return null
    } else if (here === quote) {
      if (next === quote) index += 1
      else
        return /[\p{L}\p{N}_]/u.test(next ?? '') && !/^as\b/i.test(text.slice(index + 1))
          ? null
          : { shown: '?', end: index + 1 }
    }
  }
  return null
}
