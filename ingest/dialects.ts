import type { ParsedAlerts } from '../domain/alert.ts'
import { parseAlertmanager } from './alertmanager.ts'
import { parseGeneric } from './generic.ts'
import { parseGrafana } from './grafana.ts'
import type { SiteWords } from './state-words.ts'

type AlertDialect = {
  /** Content types it takes, without parameters. Anything else is a 415. */
  contentTypes: string[]
  /** Pure and total: any bytes give alerts or a reason. `site`: its own words for a state, and whose token it came with. */
  parse(bytes: Uint8Array, nowIso: string, site?: SiteWords): ParsedAlerts
}

/** The last part of `POST /ingest/{dialect}`. A new sender is one file and one line here. */
export const dialects: Record<string, AlertDialect> = {
  alertmanager: { contentTypes: ['application/json'], parse: parseAlertmanager },
  grafana: { contentTypes: ['application/json'], parse: parseGrafana },
  generic: { contentTypes: ['application/json'], parse: parseGeneric },
}

/** The dialect of that name, or null. `constructor` is no dialect. */
export function dialectOf(name: string): AlertDialect | null {
  return Object.hasOwn(dialects, name) ? (dialects[name] ?? null) : null
}
