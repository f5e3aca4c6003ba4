import { incidentTypeOf } from './incident-type.ts'

const pair = /^"?([\p{L}_][\p{L}\p{N}_./-]*)"?\s*(?:=|:(?=\s))\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s"'{}][^"{}]*))$/u
const onlyPairs = /^(?:[\p{L}_][\p{L}\p{N}_./-]*=(?:"(?:[^"\\]|\\.)*"|[^\s"',{}]+)\s+)+$/u
const heading = /^\[(?:firing|resolved|alerting|ok)\b[^\]]*\]\s*(.+?)(?:\s+\([^()]*\))?$/iu
/** What a series of Prometheus says of itself, and no label of the alert does. */
const ofSeries = /^(?:__name__|alertstate)=/

/**
 * Words of an alert that a text names, in each way to read it; one way needs all of them in the
 * alert. Whole names, values and fingerprints; matchers of Alertmanager and Prometheus
 * (`{job="node", instance="web-1:9100"}`, `ALERTS{…}`, `env=prod`); labels in lines or JSON; a
 * message's heading (`[FIRING:1] NodeDown (web-1)`); a name in quotation marks.
 */
export function alertWordsIn(text: string): string[][] {
  const whole = text.trim()
  const plain = whole.normalize('NFKC').replace(/[“”„«»]/g, '"')
  const others = [pairsIn(plain), [heading.exec(plain)?.[1] ?? ''], [bare(plain)]]
  const ways = [[whole], ...others.filter((words) => words.length > 0 && words.every((word) => word !== ''))]
  const written = ways.map((words) => JSON.stringify(words))
  return ways.filter((_, at) => written.indexOf(written[at] as string) === at)
}

/** Label and value of each part; none where a part is something else. */
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

/** By commas and lines, of which one may stand at the end. */
function splitParts(text: string): string[] {
  const parts = text.match(/(?:[^,\n"]|"(?:[^"\\]|\\.)*")+/g) ?? []
  return parts.filter((part) => part.trim() !== '')
}

/** Without marks around it. */
const bare = (text: string) => text.replace(/^[^\p{L}\p{N}_{/]+|[^\p{L}\p{N}_}/]+$/gu, '')

/** A type by an alert's name or part: `NginxHighHttp5xx` finds `nginx_high_http5xx_error_rate`. */
export function typeWordsIn(text: string): string[] {
  const plain = text.trim()
  return [...new Set([plain.toLowerCase(), incidentTypeOf({}, plain)])]
}
