import type { ParsedAlerts } from '../domain/alert.ts'
import { parseAlertmanager } from './alertmanager.ts'
import { parseByPaths } from './by-paths.ts'
import { type Door, doors } from './doors.ts'
import { parseGeneric } from './generic.ts'
import { parseGrafana } from './grafana.ts'
import { noSiteWords, type SiteWords } from './state-words.ts'

type AlertDialect = {
  /** Content types it takes, without parameters. Anything else is a 415. */
  contentTypes: readonly string[]
  /**
   * Pure and total: any bytes give alerts or a reason. `site`: its words for a state, and the
   * token's name.
   */
  parse(bytes: Uint8Array, nowIso: string, site?: SiteWords): ParsedAlerts
}

const json = ['application/json']

/**
 * The last part of `POST /ingest/{dialect}`. A new sender is an entry of `doors`, or a file and a
 * line here.
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

/** The dialect of that name, or null. `constructor` is no dialect. */
export function dialectOf(name: string): AlertDialect | null {
  return Object.hasOwn(dialects, name) ? (dialects[name] ?? null) : null
}
