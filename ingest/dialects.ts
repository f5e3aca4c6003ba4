import type { ParsedAlerts } from '../domain/alert.ts'
import { parseAlertmanager } from './alertmanager.ts'
import { parseByPaths } from './by-paths.ts'
import { type Door, doors } from './doors.ts'
import { parseGeneric } from './generic.ts'
import { parseGrafana } from './grafana.ts'
import { noSiteWords, type SiteWords } from './state-words.ts'

type AlertDialect = {
  /** Accepted content types, without parameters. The response to any other content type is 415. */
  contentTypes: readonly string[]
  /**
   * Parses any bytes into alerts, or into the reason why none can be read. Has no side effect and
   * never throws. `site`: the installation's own words for states, and the name of the token.
   */
  parse(bytes: Uint8Array, nowIso: string, site?: SiteWords): ParsedAlerts
}

const json = ['application/json']

/**
 * The formats of alerts by the last part of `POST /ingest/{dialect}`. A new sender needs an entry
 * in `doors`, or a file and a line here.
 */
export const dialects: Readonly<Record<string, AlertDialect>> = {
  alertmanager: { contentTypes: json, parse: parseAlertmanager },
  grafana: { contentTypes: json, parse: parseGrafana },
  generic: { contentTypes: json, parse: parseGeneric },
  ...Object.fromEntries(Object.entries(doors).map(([name, door]) => [name, dialectOfDoor(name, door)])),
}

function dialectOfDoor(name: string, door: Door): AlertDialect {
  return {
    contentTypes: door.contentTypes ?? json,
    parse: (bytes, nowIso, site = noSiteWords) => parseByPaths(name, door, bytes, { nowIso, site }),
  }
}

/**
 * Returns the dialect with this name, or null. Checks own properties only, so `constructor` is not
 * a dialect.
 */
export function dialectOf(name: string): AlertDialect | null {
  return Object.hasOwn(dialects, name) ? (dialects[name] ?? null) : null
}
