import { redact } from '../../safety/redact.ts'
import { cutText } from '../kind.ts'

/**
 * A statement without its values: people and models read what a session does, not to whom. Strings,
 * numbers and comments go; where the server's reading of a quote is unsure, all that follows goes.
 */

const maxCharacters = 200
/** A setting takes an unquoted word as its value, as does each of a list in such a statement. */
const settingValue =
  /(\bset\s+(?:(?:session|local|global|persist|persist_only)\s+)?(?:@@?)?[\w.]+\s*(?::?=|\bto\b)\s*)[^\s;,)]+/gi
const settingList = /(?<=^\s*set\s[^;]*)(:?=\s*)[^\s;,)]+/gi

export const hideLiterals = (sql: string, dialect: 'postgres' | 'mysql'): string =>
  cutText(maskLiterals(sql, dialect), maxCharacters)

/** The same, as long as it is. */
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

/** Types that may stand at a quote. */
const typed = /^(?:date|time|timestamp|timestamptz|interval|text|jsonb?|uuid|inet)$/i

/** The shown text at a place, and its end. Null: nobody can tell its end. */
function readStep(text: string, at: number, dialect: 'postgres' | 'mysql'): Step | null {
  const rest = text.slice(at)
  const isMysql = dialect === 'mysql'
  const comment = readComment(rest, isMysql)
  if (comment === null) return null
  if (comment !== undefined) return step(at, comment, ' ')
  // MySQL has them since version 9.
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
  // A word beside a quote: somewhere before one was left out.
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
 * A comment to the server's end of it. Undefined: none here. Null: nobody can tell whether the
 * server runs it, or its end.
 */
function readComment(rest: string, isMysql: boolean): string | null | undefined {
  if (!isMysql) {
    if (rest.startsWith('--')) return /^--[^\n\r]*/.exec(rest)?.[0]
    return rest.startsWith('/*') ? readNested(rest) : undefined
  }
  // Two signs without a space behind them are arithmetic to MySQL.
  const line = /^(?:#|--(?=[\s\p{Cc}]|$))[^\n]*/u.exec(rest)?.[0]
  if (line !== undefined) return line
  const block = /^\/\*[\s\S]*?(?:\*\/|$)/.exec(rest)?.[0]
  // The server runs `/*!` by version; a quote or comment in it may then reach over its end.
  return block !== undefined && /^\/\*M?!/i.test(block) && /['"`#]|--|.\/\*/s.test(block) ? null : block
}

/** A comment of PostgreSQL, which holds others. */
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

/** A string to its end. Servers differ on a backslash before a quote. */
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
