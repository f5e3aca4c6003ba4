import type { LogLine, LogTemplate } from './last.ts'
import { quotePattern } from './logs.ts'

/**
 * Kinds of lines for a server's search: a template as a regular expression, of RE2 for the server
 * and of JavaScript for the read lines.
 */

const dialects = {
  re2: { blank: '\\s', other: '\\S' },
  here: { blank: '[\\t\\n\\f\\r ]', other: '[^\\t\\n\\f\\r ]' },
} as const

/** A template has as many words of a line at most, and as many characters are read. */
const maxWords = 60
const maxCharacters = 2_000

/** `hasTimes`: what was masked may be a date and a time with a blank between them. */
function toPattern({ text, sample }: LogTemplate, dialect: keyof typeof dialects, hasTimes: boolean): string {
  const { blank, other } = dialects[dialect]
  const parts = text.split(' ')
  const isOpen = parts.length >= maxWords || sample.length > maxCharacters
  const masked = `${other}+${hasTimes ? `(?:${blank}\\d\\d:\\d\\d:\\d\\d${other}*)?` : ''}`
  const patterns = parts.map((part) => part.split('<*>').map(quotePattern).join(masked))
  return `^${blank}*${patterns.join(`${blank}+`)}${isOpen ? '' : `${blank}*$`}`
}

/**
 * Templates' patterns: null for those that match other read lines than their own, since a server
 * would count wrongly.
 */
export function findPatterns(
  templates: readonly LogTemplate[],
  lines: readonly LogLine[],
  groups: readonly LogTemplate[],
): (string | null)[] {
  return templates.map((template) => {
    const isExact = (hasTimes: boolean) => {
      const expression = new RegExp(toPattern(template, 'here', hasTimes))
      return lines.every(({ text }, at) => expression.test(text) === (groups[at]?.text === template.text))
    }
    const hasTimes = [false, true].find(isExact)
    return hasTimes === undefined ? null : toPattern(template, 're2', hasTimes)
  })
}

const words =
  'error|err|fatal|panic|critical|crit|alert|emerg|exception|fail(?:ed|ure)?|denied|refused|timed? ?out|warn(?:ing)?|expired|killed|cannot|unable'
/** Lines that tell of trouble, here and, as RE2, at a server. */
export const trouble = new RegExp(`\\b(?:${words})\\b`, 'i')
export const troublePattern = `(?i)\\b(?:${words})\\b`
