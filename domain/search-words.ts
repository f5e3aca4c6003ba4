import { incidentTypeOf } from './incident-type.ts'

/** So much of a word of an alert is compared. */
const maxWordChars = 200
const pair = /^([\p{L}_][\p{L}\p{N}_.:/-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s"',{}]+))$/u

/**
 * The words of an alert that a text names, all of which it has to have: matchers as they stand in Alertmanager and Prometheus (`{job="node", instance="web-1:9100"}`,
 * `env=prod`), else the text as a whole: a name, a value, a fingerprint.
 */
export function alertWordsIn(text: string): string[] {
  const parts = splitOutsideQuotes(text.trim().replace(/^\{(.*)\}$/s, '$1')).map((part) => pair.exec(part.trim()))
  const pairs = parts.flatMap((found) =>
    found ? [`${found[1]}=${found[2]?.replaceAll(/\\(.)/g, '$1') ?? found[3] ?? found[4] ?? ''}`] : [],
  )
  const words = pairs.length > 0 && pairs.length === parts.length ? pairs : [text.trim()]
  return words.map((word) => word.toLowerCase().slice(0, maxWordChars))
}

/** By commas, of which one may stand at the end. */
function splitOutsideQuotes(text: string): string[] {
  const parts = text.match(/(?:[^,"]|"(?:[^"\\]|\\.)*")+/g) ?? []
  return parts.filter((part) => part.trim() !== '')
}

/** A type as the name of an alert, or a part of it, gives one: `NginxHighHttp5xx` finds `nginx_high_http5xx_error_rate`. */
export function typeWordsIn(text: string): string[] {
  const plain = text.trim()
  return [...new Set([plain.toLowerCase(), incidentTypeOf({}, plain)])]
}
