import { capitalize, formatCount, formatList, truncate } from './format.ts'
import { isShort } from './short-answer.ts'
import type { Envelope, Tool } from './tool.ts'

/**
 * Describes the result of a tool in one line for a person who was just woken. The functions below
 * accept a response of any shape, because it is untrusted.
 */
type ResultFields = Record<string, unknown>

export const maxSaidCharacters = 300

const isFields = (value: unknown): value is ResultFields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the objects in a list; empty for anything but a list. */
export function toList(value: unknown): ResultFields[] {
  return Array.isArray(value) ? value.filter(isFields) : []
}

/** Returns a string, number or boolean as text; empty for any other value. */
export function toText(value: unknown): string {
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : ''
}

/** Returns the strings in a list; empty for anything but a list. */
export const toWords = (value: unknown): string[] => (Array.isArray(value) ? value.map(toText).filter(Boolean) : [])

/** Formats ` (why)` with a reason; an empty text without a reason. */
export function inBrackets(why: unknown): string {
  return toText(why) ? ` (${toText(why)})` : ''
}

/**
 * Describes the output of a command: the whole output if it has only a few lines, otherwise the
 * first line and the number of lines.
 */
export function describePrinted(text: unknown): string {
  const lines = toText(text)
    .split('\n')
    .map((line) => line.trim())
    // Drops lines that consist only of braces. A field of JSON becomes a name and a value.
    .map((line) => line.replace(/^"([^"]+)":\s*(.*?),?$/, '$1: $2'))
    .filter((line) => /[\p{L}\p{N}]/u.test(line))
  if (lines.length === 0) return 'it printed nothing'
  if (lines.length <= 3) return lines.map((line) => truncate(line, 120)).join('; ')
  return `${lines.length} lines, the first: ${truncate(lines[0] ?? '', 160)}`
}

/** Describes how a program ended, with its output, or with its error output if it failed. */
export function describeRun({ exit_code: code, stdout, stderr, output }: ResultFields): string {
  const failed = code !== 0 && code !== undefined
  const printed = describePrinted(
    failed ? toText(stderr) || toText(stdout) || output : toText(stdout) || toText(output) || stderr,
  )
  return failed ? `it ended with ${toText(code) || 'a signal'}: ${printed}` : printed
}

/** Formats `all 3 nodes are nominal`, or names the parts that are not nominal, with the reason. */
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

/** Formats a number of things with the names of the first three: `2 commits: one; two`. */
export function describeItems(names: readonly string[], what: string, total = names.length): string {
  const shown = names.slice(0, 3).map((name) => truncate(name, 100))
  if (total === 0 || shown.length === 0) return formatCount(total, what)
  return `${formatCount(total, what)}: ${formatList([...shown, ...(total > shown.length ? [`${total - shown.length} more`] : [])])}`
}

const codeBlock = /```[\s\S]*?(?:```|$)/g
const longest = 2_000

/**
 * Converts a model's text to sentences. JSON, as a whole or in blocks, is quoted without braces.
 */
export function plainWords(text: string): string {
  const trimmed = text.trim()
  const whole = parse(trimmed)
  const spoken = whole === null ? trimmed.replace(codeBlock, wordsOfBlock) : wordsIn(whole).join('. ')
  return tidy(withoutObjects(spoken))
}

/** Removes the braces and quoted names of an object that was cut. */
function tidy(text: string): string {
  const words = text.replace(/[{}]+/g, ' ').replace(/":\s/g, ' ').replace(/\s+/g, ' ').trim()
  const shown = words.replaceAll(keptOpen, '{').replaceAll(keptClose, '}')
  return (shown || nothingSaid).slice(0, longest).toWellFormed()
}

const nothingSaid = 'No readable text'

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

/** Lists the sentences among the values of a JSON response. */
function wordsIn(value: unknown): string[] {
  if (typeof value === 'string') return /\s/.test(value.trim()) ? [value.trim().replace(/[.\s]+$/, '')] : []
  if (Array.isArray(value)) return value.flatMap(wordsIn)
  if (value !== null && typeof value === 'object') return Object.values(value).flatMap(wordsIn)
  return []
}

/** Placeholders for braces that are kept. Stored text never contains these characters. */
const [keptOpen, keptClose] = ['\u0001', '\u0002']

/**
 * The text inside the braces of an object: nothing, or first a name and a colon. The labels of a
 * query have no colon.
 */
const objectBody = /^\s*(?:$|\\?"[^"]*"\s*:|'[^']*'\s*:|[\w$-]+\s*:)/

/**
 * Removes objects and lists from a sentence, the innermost first, and also an object that was cut.
 * Keeps the braces of a query (`up{job="x"} == 0`) or of a command (`awk '{print $2}'`).
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
 * Formats the summary of an action with its command in a form for people. The card also quotes the
 * command exactly.
 */
export function sayAction(summary: string): string {
  return summary.replace(/\["(?:[^"\\]|\\.)*"(?:,"(?:[^"\\]|\\.)*")*\]/g, (words) => {
    const read = parse(words)
    return read === null ? words : toWords(read).join(' ')
  })
}

/** Converts a text, even an untrusted one, to one sentence of limited length without JSON. */
export function toSentence(text: string): string {
  return truncate(plainWords(text), maxSaidCharacters)
}

/**
 * Builds the sentence about the result of a call. Null if the tool cannot describe a response of
 * this shape.
 */
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
    // Marks a partial response even if it is empty: "no process on port 443" may have missed a
    // process.
    return isShort(data) && !/\((?:partial|not all)|more than/.test(said) ? `${said} (not all was read)` : said
  } catch {
    // Ignores the error, because an unexpected response must not fail the call. The response itself
    // is in the log row.
    return null
  }
}

/** Capitalizes the first letter, unless the first word is a name in the call or the response. */
function beginSentence(sentence: string, given: unknown): string {
  const [first = ''] = sentence.split(/[\s:,;.(]/, 1)
  return hasText(given, first, 0) ? sentence : capitalize(sentence)
}

function hasText(value: unknown, text: string, depth: number): boolean {
  if (typeof value !== 'object' || value === null || depth > 4) return value === text
  return Object.entries(value).some(([key, each]) => key !== 'kind' && hasText(each, text, depth + 1))
}
