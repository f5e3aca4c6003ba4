import { sql } from 'kysely'
import { parseResourceKey } from '../../domain/registry.ts'
import { onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import type { AlertRow } from '../tables.ts'

/** Labels that name the subject of an alert. Ports are ignored. */
const namingLabels = [
  ...['shard', 'node', 'tenant', 'host', 'vm', 'vm_name', 'instance', 'exported_instance', 'nodename', 'hostname'],
  ...['fqdn', 'target', 'cluster', 'region', 'datname'],
]

/** A resource as alerts may name it: the keys of all its names, and the names in lower case. */
type NamedThing = { keys: string[]; names: string[] }

/**
 * Finds the names that the registry has for a resource, by the key that sources with authority
 * give. `text`: the key `kind:id` of the resource, or its id. If the resource is unknown, its only
 * name is this text.
 */
export async function namesOfThing(db: Db | Trx, text: string): Promise<NamedThing> {
  const ref = parseResourceKey(text)
  const { rows } = await sql<{ key: string; names: string[] }>`
    select other.kind || ':' || other.id as key, other.names
    from resource own join resource other on other.canonical = own.canonical
    where ${ref ? sql`own.kind = ${ref.kind} and own.id = ${ref.id}` : sql`own.id = ${text}`}`.execute(db)
  const own = (ref?.id ?? text).toLowerCase()
  return {
    keys: [...new Set([...rows.map(({ key }) => key), ...(ref ? [text] : [])])],
    names: [...new Set([own, ...rows.flatMap(({ names }) => names)])],
  }
}

/**
 * Whether an alert is about the resource: by its incident, or by a label with a name of the
 * resource, with or without a port.
 */
export const isAbout = ({ keys, names }: NamedThing) => sql<boolean>`(
  exists (
    select from jsonb_each_text(alert.labels) as label(name, value)
    where label.name = any(${namingLabels}::text[])
      and (lower(label.value) = any(${names}::text[]) or lower(regexp_replace(label.value, ':[0-9]+$', '')) = any(${names}::text[])))
  or alert.incident_id in (
    select id from incident where (resource_kind, resource_id) in (
      select split_part(key, ':', 1), substr(key, strpos(key, ':') + 1) from unnest(${keys}::text[]) as key)))`

/** Seconds for which an ended alert still counts as active. */
const retentionSeconds = 300

/**
 * Maximum number of alerts of a resource that are shown. One more alert is read, which shows
 * whether there are more.
 */
export const maxActiveAlerts = 50

const isActive = sql<boolean>`(alert.status = 'firing'
  or alert.status = 'resolved' and alert.ends_at > ${onceNow} - make_interval(secs => ${retentionSeconds}))`

/**
 * Whether other incidents have alerts about a resource under any of its names. Alerts count that
 * fire, or that ended within 300 s.
 */
export async function isActiveAbout(db: Db | Trx, resource: string, incidentId: string) {
  const about = isAbout(await namesOfThing(db, resource))
  return sql<boolean>`${isActive} and ${about} and incident_id is distinct from ${incidentId}`
}

/** Lists alerts about a resource, under any of its names, that fire or ended within 300 s. */
export async function activeAlerts({ db }: Scope, resource: string): Promise<AlertRow[]> {
  return await db
    .selectFrom('alert')
    .selectAll()
    .where(isActive)
    .where(isAbout(await namesOfThing(db, resource)))
    .orderBy('startsAt', 'desc')
    .limit(maxActiveAlerts + 1)
    .execute()
}
