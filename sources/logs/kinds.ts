import type { LogLine, LogTemplate } from './last.ts'
import { quotePattern } from './logs.ts'

/**
 * Converts templates of log lines to patterns: a regular expression of RE2 for the server's search,
 * and one of JavaScript for the lines that were read.
 */

const dialects = {
  re2: { blank: '\\s', other: '\\S' },
  here: { blank: '[\\t\\n\\f\\r ]', other: '[^\\t\\n\\f\\r ]' },
} as const

/** The most words of a line in a template, and the most characters that are read of a line. */
const maxWords = 60
const maxCharacters = 2_000

/**
 * Writes a template as a pattern. `hasTimes`: a variable part may be a date and a time with a blank
 * between them.
 */
function toPattern({ text, sample }: LogTemplate, dialect: keyof typeof dialects, hasTimes: boolean): string {
  const { blank, other } = dialects[dialect]
  const parts = text.split(' ')
  const isOpen = parts.length >= maxWords || sample.length > maxCharacters
  const masked = `${other}+${hasTimes ? `(?:${blank}\\d\\d:\\d\\d:\\d\\d${other}*)?` : ''}`
  const patterns = parts.map((part) => part.split('<*>').map(quotePattern).join(masked))
  return `^${blank}*${patterns.join(`${blank}+`)}${isOpen ? '' : `${blank}*$`}`
}

/**
 * Returns the pattern of each template. Null if the pattern also matches lines of other templates,
 * because the server would count these lines too.
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
/** Matches words that report trouble: in the lines that were read, and as RE2 at the server. */
export const trouble = new RegExp(`\\b(?:${words})\\b`, 'i')
export const troublePattern = `(?i)\\b(?:${words})\\b`
