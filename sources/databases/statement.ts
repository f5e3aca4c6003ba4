import type { DatabaseServer } from '../../clients/databases/server.ts'
import { cutText } from '../kind.ts'

/**
 * A statement without its values: what people and models read of a session is what it does, and not to whom. Strings, numbers and comments go; where it is
 * not sure how the server reads a quote, all that follows goes.
 */

const maxCharacters = 200

export function hideLiterals(sql: string, dialect: DatabaseServer['dialect']): string {
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
  return cutText(
    shown
      .replace(/\s+/g, ' ')
      .replace(/\?(?:\s*,\s*\?)+/g, '?, …')
      .trim(),
    maxCharacters,
  )
}

/** What stands at a place, as it is shown, and where it ends. Null: nobody can tell where it ends. */
function readStep(text: string, at: number, dialect: DatabaseServer['dialect']): Step | null {
  const rest = text.slice(at)
  const isMysql = dialect === 'mysql'
  const comment =
    /^(?:--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))/.exec(rest)?.[0] ?? (isMysql ? /^#[^\n]*/.exec(rest)?.[0] : undefined)
  if (comment !== undefined) return step(at, comment, ' ')
  const tag = isMysql ? undefined : /^\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/u.exec(rest)?.[0]
  if (tag !== undefined) {
    const close = text.indexOf(tag, at + tag.length)
    return close < 0 ? null : { shown: '?', end: close + tag.length }
  }
  const opening = /^(?:[EeBbXxNn]|[Uu]&|_\w{1,20}\s*)?'/.exec(rest)?.[0] ?? (isMysql ? /^"/.exec(rest)?.[0] : undefined)
  if (opening !== undefined) return readString(text, at, opening, !isMysql && /^e/i.test(opening))
  const name = /^(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`)/.exec(rest)?.[0]
  if (name !== undefined) return step(at, name, name)
  const word = /^[\p{L}_][\p{L}\p{N}_$]*/u.exec(rest)?.[0]
  if (word !== undefined) return step(at, word, word)
  const parameter = /^\$\d+/.exec(rest)?.[0]
  if (parameter !== undefined) return step(at, parameter, '?')
  const number = /^(?:0x[0-9a-f]+|\d[\d._]*(?:e[+-]?\d+)?)[\p{L}\p{N}_]*/iu.exec(rest)?.[0]
  if (number !== undefined) return step(at, number, '?')
  if (/^["`]/.test(rest)) return null
  const [sign = ''] = rest
  return step(at, sign, sign)
}

type Step = { shown: string; end: number }

const step = (at: number, text: string, shown: string): Step => ({ shown, end: at + text.length })

/** A string up to its end. A backslash before a quote is read by one server as a part of it, and by another not. */
function readString(text: string, at: number, opening: string, hasEscapes: boolean): Step | null {
  const quote = opening.at(-1)
  for (let index = at + opening.length; index < text.length; index++) {
    const [here, next] = [text[index], text[index + 1]]
    if (here === '\\') {
      if (hasEscapes) index += 1
      else if (next === quote || next === '\\') return null
    } else if (here === quote) {
      if (next === quote) index += 1
      else return { shown: '?', end: index + 1 }
    }
  }
  return null
}
