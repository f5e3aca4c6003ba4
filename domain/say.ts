import { capitalize, formatCount, formatList, truncate } from './format.ts'
import { isShort } from './short-answer.ts'
import type { Envelope, Tool } from './tool.ts'

/**
 * A tool's word on its result: one line for a person who was woken. The parts below trust no shape
 * of a stranger's answer.
 */
type ResultFields = Record<string, unknown>

export const maxSaidCharacters = 300

const isFields = (value: unknown): value is ResultFields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The objects of a list; empty for all else. */
export function toList(value: unknown): ResultFields[] {
  return Array.isArray(value) ? value.filter(isFields) : []
}

/** A word, a number or a truth as text; empty for all else. */
export function toText(value: unknown): string {
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : ''
}

/** The words of a list. */
export const toWords = (value: unknown): string[] => (Array.isArray(value) ? value.map(toText).filter(Boolean) : [])

/** ` (why)`, or nothing. */
export function inBrackets(why: unknown): string {
  return toText(why) ? ` (${toText(why)})` : ''
}

/** What a command printed: its few lines, or the first of many with their number. */
export function describePrinted(text: unknown): string {
  const lines = toText(text)
    .split('\n')
    .map((line) => line.trim())
    // A line of braces alone says nothing; a field of JSON reads as a name and a value.
    .map((line) => line.replace(/^"([^"]+)":\s*(.*?),?$/, '$1: $2'))
    .filter((line) => /[\p{L}\p{N}]/u.test(line))
  if (lines.length === 0) return 'it printed nothing'
  if (lines.length <= 3) return lines.map((line) => truncate(line, 120)).join('; ')
  return `${lines.length} lines, the first: ${truncate(lines[0] ?? '', 160)}`
}

/** How a program ended, and what it printed; of one that failed its complaint. */
export function describeRun({ exit_code: code, stdout, stderr, output }: ResultFields): string {
  const failed = code !== 0 && code !== undefined
  const printed = describePrinted(
    failed ? toText(stderr) || toText(stdout) || output : toText(stdout) || toText(output) || stderr,
  )
  return failed ? `it ended with ${toText(code) || 'a signal'}: ${printed}` : printed
}

/** `all 3 nodes are nominal`, or which are not, and why. */
export function describeParts(parts: readonly ResultFields[], what: string): string {
  const ill = parts.filter(({ status }) => toText(status) !== 'nominal')
  if (parts.length === 0) return `it has no ${what}s`
  if (ill.length === 0)
    return parts.length === 1 ? `its ${what} is nominal` : `all ${formatCount(parts.length, what)} are nominal`
  const named = ill
    .slice(0, 4)
    .map(({ id, status, reason }) => `${toText(id)} is ${toText(status)}${inBrackets(reason)}`)
  const more = ill.length > 4 ? [`${ill.length - 4} more`] : []
  return `${ill.length} of ${formatCount(parts.length, what)} ${ill.length === 1 ? 'is' : 'are'} not nominal: ${[...named, ...more].join('; ')}`
}

/** `2 commits: one; two`, of many the first three. */
export function describeItems(names: readonly string[], what: string, total = names.length): string {
  const shown = names.slice(0, 3).map((name) => truncate(name, 100))
  if (total === 0 || shown.length === 0) return formatCount(total, what)
  return `${formatCount(total, what)}: ${formatList([...shown, ...(total > shown.length ? [`${total - shown.length} more`] : [])])}`
}

const codeBlock = /```[\s\S]*?(?:```|$)/g
const longest = 2_000

/**
 * A model's words as sentences: one that answers in JSON, or with blocks of it, is quoted without
 * braces. People who were woken read none.
 */
export function plainWords(text: string): string {
  const trimmed = text.trim()
  const whole = parse(trimmed)
  const spoken = whole === null ? trimmed.replace(codeBlock, wordsOfBlock) : wordsIn(whole).join('. ')
  return tidy(withoutObjects(spoken))
}

/** The rest of a cut object reads like one: its braces and quoted names go. */
function tidy(text: string): string {
  const words = text.replace(/[{}]+/g, ' ').replace(/":\s/g, ' ').replace(/\s+/g, ' ').trim()
  const shown = words.replaceAll(keptOpen, '{').replaceAll(keptClose, '}')
  return (shown || nothingSaid).slice(0, longest).toWellFormed()
}

const nothingSaid = 'It said nothing in words'

function parse(text: string): unknown {
  if (!/^[[{"]/.test(text)) return null
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function wordsOfBlock(block: string): string {
  const inner = block.replace(/^```\w*\n?|```$/g, '')
  const value = parse(inner.trim())
  return value === null ? ' ' : ` ${wordsIn(value).join('. ')} `
}

/** The sentences among the values of an answer in JSON. */
function wordsIn(value: unknown): string[] {
  if (typeof value === 'string') return /\s/.test(value.trim()) ? [value.trim().replace(/[.\s]+$/, '')] : []
  if (Array.isArray(value)) return value.flatMap(wordsIn)
  if (value !== null && typeof value === 'object') return Object.values(value).flatMap(wordsIn)
  return []
}

/** Marks for braces that stay while others are looked for: no stored text has these characters. */
const [keptOpen, keptClose] = ['\u0001', '\u0002']

/**
 * The inside of an object's braces: nothing, or a name and a colon first. Labels of a query have
 * neither.
 */
const objectBody = /^\s*(?:$|\\?"[^"]*"\s*:|'[^']*'\s*:|[\w$-]+\s*:)/

/**
 * Takes objects and lists out of a sentence, the innermost first, and the rest of a cut one. Other
 * braces are words: a query's (`up{job="x"} == 0`), a command's (`awk '{print $2}'`).
 */
function withoutObjects(text: string): string {
  let rest = text.replaceAll(keptOpen, ' ').replaceAll(keptClose, ' ')
  for (let depth = 0; depth < 20; depth += 1) {
    const next = rest.replace(/\{([^{}]*)\}|\[\s*"[^[\]]*\]/g, (_all, body: string | undefined) =>
      body === undefined || objectBody.test(body) ? ' ' : `${keptOpen}${body}${keptClose}`,
    )
    if (next === rest) break
    rest = next
  }
  return rest.replace(/[{[]\s*"[\s\S]*$/, ' ').replace(/"\s*[}\]]+/g, ' ')
}

/**
 * An action's summary with a command's words as people read them. The card has them exactly, in
 * quotes.
 */
export function sayAction(summary: string): string {
  return summary.replace(/\["(?:[^"\\]|\\.)*"(?:,"(?:[^"\\]|\\.)*")*\]/g, (words) => {
    const read = parse(words)
    return read === null ? words : toWords(read).join(' ')
  })
}

/** One line without data, bounded: also of a stranger's text, whose objects are left out. */
export function toSentence(text: string): string {
  return truncate(plainWords(text), maxSaidCharacters)
}

/** The sentence that a call's row keeps. Null: the tool cannot speak of this shape of answer. */
export function sayResult(
  { name, say }: Pick<Tool, 'name' | 'say'>,
  { ok, data, error }: Envelope,
  input: ResultFields,
): string | null {
  if (!ok) {
    const about = ['id', 'on', 'node', 'vm', 'resource', 'shard_id'].map((field) => toText(input[field])).find(Boolean)
    return toSentence(`${name}${about ? ` of ${about}` : ''} failed: ${error?.message ?? 'without a reason'}`)
  }
  try {
    const said = beginSentence(toSentence(say(data, input)), [input, data])
    // A part is no whole, even an empty one: "no process on port 443", of those that may be seen.
    return isShort(data) && !/\((?:partial|not all)|more than/.test(said) ? `${said} (not all was read)` : said
  } catch {
    // Nothing of a call may fail because its answer is odd: the row has the answer itself.
    return null
  }
}

/**
 * Capitalizes the first letter, unless the first word is a name in call or answer: names keep their
 * spelling.
 */
function beginSentence(sentence: string, given: unknown): string {
  const [first = ''] = sentence.split(/[\s:,;.(]/, 1)
  return hasText(given, first, 0) ? sentence : capitalize(sentence)
}

function hasText(value: unknown, text: string, depth: number): boolean {
  if (typeof value !== 'object' || value === null || depth > 4) return value === text
  return Object.entries(value).some(([key, each]) => key !== 'kind' && hasText(each, text, depth + 1))
}
