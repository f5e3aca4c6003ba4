import { incidentTypeOf } from './incident-type.ts'

const pair = /^"?([\p{L}_][\p{L}\p{N}_./-]*)"?\s*(?:=|:(?=\s))\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s"'{}][^"{}]*))$/u
const onlyPairs = /^(?:[\p{L}_][\p{L}\p{N}_./-]*=(?:"(?:[^"\\]|\\.)*"|[^\s"',{}]+)\s+)+$/u
const heading = /^\[(?:firing|resolved|alerting|ok)\b[^\]]*\]\s*(.+?)(?:\s+\([^()]*\))?$/iu
/** Labels that a Prometheus series has and an alert does not have. */
const ofSeries = /^(?:__name__|alertstate)=/

/**
 * Finds the words of an alert in a text. Returns each possible reading of the text as a list of
 * words; an alert matches a reading if it has all words of the list. Reads whole names, values and
 * fingerprints; matchers of Alertmanager and Prometheus (`{job="node", instance="web-1:9100"}`,
 * `ALERTS{…}`, `env=prod`); labels in lines or JSON; the heading of a message (`[FIRING:1] NodeDown
 * (web-1)`); and a quoted name.
 */
export function alertWordsIn(text: string): string[][] {
  const whole = text.trim()
  const plain = whole.normalize('NFKC').replace(/[“”„«»]/g, '"')
  const others = [pairsIn(plain), [heading.exec(plain)?.[1] ?? ''], [bare(plain)]]
  const ways = [[whole], ...others.filter((words) => words.length > 0 && words.every((word) => word !== ''))]
  const written = ways.map((words) => JSON.stringify(words))
  return ways.filter((_, at) => written.indexOf(written[at] as string) === at)
}

/** Lists the label and value of each part of a text. Empty if a part is anything else. */
function pairsIn(text: string): string[] {
  const inner = text.replace(/^[\p{L}\p{N}_:]*\{(.*)\}$/su, '$1')
  const parts = onlyPairs.test(`${inner} `)
    ? (inner.match(/\S+?=(?:"(?:[^"\\]|\\.)*"|\S+)/gu) ?? [])
    : splitParts(inner)
  const found = parts.map((part) => pair.exec(part.trim().replace(/^[-*•]\s+/, '')))
  if (!found.every((each) => each !== null)) return []
  return found
    .map(
      ([, label, quoted, single, open]) => `${label}=${quoted?.replaceAll(/\\(.)/g, '$1') ?? single ?? open?.trim()}`,
    )
    .filter((word) => !ofSeries.test(word))
}

/** Splits a text at commas and line breaks that are not within quotes. Drops blank parts. */
function splitParts(text: string): string[] {
  const parts = text.match(/(?:[^,\n"]|"(?:[^"\\]|\\.)*")+/g) ?? []
  return parts.filter((part) => part.trim() !== '')
}

/** Removes punctuation around a text. */
const bare = (text: string) => text.replace(/^[^\p{L}\p{N}_{/]+|[^\p{L}\p{N}_}/]+$/gu, '')

/**
 * Returns words with which an incident type can be found by a part of its name, such as
 * `NginxHighHttp5xx` for `nginx_high_http5xx_error_rate`.
 */
export function typeWordsIn(text: string): string[] {
  const plain = text.trim()
  return [...new Set([plain.toLowerCase(), incidentTypeOf({}, plain)])]
}
