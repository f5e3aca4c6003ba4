import { sql } from 'kysely'
import {
  type Change,
  type ChangeRules,
  changeNamesToLookUp,
  chooseChangeResources,
  type NearChange,
  type StoredChange,
} from '../../domain/change.ts'
import { newId } from '../../domain/digest.ts'
import { truncate } from '../../domain/format.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { ResourceRule } from '../../domain/resource-rules.ts'
import { cleanse } from '../../safety/redact.ts'
import { onceNow } from '../clock.ts'
import { type Db, escapeLike, type Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import { readSettings } from '../settings.ts'
import { findByNames } from './registry.ts'

/**
 * The outcome of a change, with one entry for each resource. For a repeat, the outcome of the first
 * delivery.
 */
export type TakenChange = {
  outcome: 'stored' | 'repeated'
  title: string
  about: { id: string; resource: ResourceRef | null; why: string }[]
}

/**
 * Stores changes, all or none. A repeated delivery adds nothing. A change without a known resource
 * is also stored, with the names and labels that were tried.
 */
export async function takeChanges(db: Db, received: readonly Change[]): Promise<TakenChange[]> {
  if (received.length === 0) return []
  const changes = received.map(cleanseChange)
  return await db.transaction().execute(async (trx) => {
    const settings = await readSettings(trx)
    const rules: ChangeRules = {
      change: settings.value<ResourceRule[]>('change.resource_labels'),
      alert: settings.value<ResourceRule[]>('alert.resource_labels'),
    }
    const known = await findByNames(
      trx,
      changes.flatMap((change) => changeNamesToLookUp(change, rules)),
    )
    const taken = new Map<number, TakenChange>()
    // Stores changes in a fixed order. Of two requests with equal changes, the second then waits
    // for the first instead of deadlocking.
    const inOrder = [...changes.entries()].sort(([, a], [, b]) => (a.delivery < b.delivery ? -1 : 1))
    for (const [at, change] of inOrder) {
      const about = chooseChangeResources(change, rules, known)
      taken.set(at, await storeOnce(trx, change, about))
    }
    return changes.map((_, at) => taken.get(at) as TakenChange)
  })
}

/** Removes secrets from a change. Its identity stays as received, because it is a digest. */
function cleanseChange(received: Change): Change {
  const change = cleanse(received)
  const title = change.title.trim() === '' ? '(nothing that can be read)' : change.title
  return { ...change, title, delivery: received.delivery }
}

async function storeOnce(
  trx: Trx,
  { resources: _, labels, ...change }: Change,
  about: ReturnType<typeof chooseChangeResources>,
): Promise<TakenChange> {
  const rows = about.map(({ resource, why }, part) => ({
    ...change,
    id: newId('chg'),
    part,
    why: truncate(why, maxWhyCharacters),
    labels: JSON.stringify(labels),
    resourceKind: resource?.kind ?? null,
    resourceId: resource?.id ?? null,
  }))
  const [first, ...rest] = rows
  const isNew = await trx
    .insertInto('change')
    .values(first as (typeof rows)[number])
    .onConflict((on) => on.columns(['source', 'delivery', 'part']).doNothing())
    .returning('id')
    .executeTakeFirst()
  if (isNew && rest.length > 0) await trx.insertInto('change').values(rest).execute()
  const stored = await trx
    .selectFrom('change')
    .select(['id', 'title', 'resourceKind', 'resourceId', 'why'])
    .where('source', '=', change.source)
    .where('delivery', '=', change.delivery)
    .orderBy('part')
    .execute()
  return {
    outcome: isNew ? 'stored' : 'repeated',
    title: stored[0]?.title ?? change.title,
    about: stored.map(({ id, resourceKind, resourceId, why }) => ({
      id,
      resource: toRef(resourceKind, resourceId),
      why,
    })),
  }
}

const maxWhyCharacters = 500

const toRef = (kind: string | null, id: string | null): ResourceRef | null =>
  kind === null || id === null ? null : ({ kind, id } as ResourceRef)

const columns = sql`change.id, change.at, change.received_at as "receivedAt", change.source, change.title, change.author, change.url,
  change.revision, change.environment, change.why, change.labels, case when change.resource_kind is null then null
    else jsonb_build_object('kind', change.resource_kind, 'id', change.resource_id) end as resource`

type Filter = { resource: ResourceRef | null; source: string | null; isUnmatched: boolean; q: string | null }
type ChangePlace = { at: string; id: string }

/**
 * Lists changes, newest first. If a resource is given, lists its changes under all of its names,
 * without changes of its neighbours.
 */
export async function listChanges(
  { db }: Scope,
  { resource, source, isUnmatched, q }: Filter,
  page: { before: ChangePlace | null; limit: number },
): Promise<StoredChange[]> {
  const pattern = q === null ? null : `%${escapeLike(q)}%`
  const { rows } = await sql<StoredChange>`
    select ${columns} from change
    where (${source}::text is null or source = ${source})
      and (not ${isUnmatched}::boolean or resource_kind is null)
      and (${pattern}::text is null or title ilike ${pattern} or author ilike ${pattern} or revision ilike ${pattern})
      and (${resource?.kind ?? null}::text is null or (resource_kind, resource_id) in (
        select ${resource?.kind ?? null}::text, ${resource?.id ?? null}::text
        union select same.kind, same.id from resource own join resource same using (canonical)
        where own.kind = ${resource?.kind ?? null} and own.id = ${resource?.id ?? null}))
      and (${page.before?.at ?? null}::timestamptz is null
        or (at, id) < (${page.before?.at ?? null}::timestamptz, ${page.before?.id ?? null}::text))
    order by at desc, id desc limit ${page.limit}`.execute(db)
  return rows
}

/** Maximum number of steps along hosts and dependencies. */
const maxSteps = 3

/**
 * Lists changes of a resource, and of everything that it runs on or depends on, newest first. Each
 * change is listed once, at the nearest resource. Uses the relations of every source, because the
 * relations affect only what is shown.
 */
export async function changesNear(
  { db }: Scope,
  { kind, id }: ResourceRef,
  within: { fromIso: string; untilIso?: string; limit: number },
): Promise<{ changes: NearChange[]; found: number }> {
  const { rows } = await sql<NearChange & { found: number }>`
    with recursive about as (
      (select ${kind}::text as kind, ${id}::text as id, 0 as steps
      union
      select same.kind, same.id, 0 from resource own join resource same using (canonical)
      where own.kind = ${kind} and own.id = ${id})
      union
      select same.kind, same.id, about.steps + 1
      from about
        join relation on relation.from_kind = about.kind and relation.from_id = about.id
          and relation.kind in ('runs_on', 'depends_on')
        join resource target on target.kind = relation.to_kind and target.id = relation.to_id
        join resource same on same.canonical = target.canonical
      where about.steps < ${maxSteps}
    ), nearest as (
      select kind, id, min(steps) as steps from about group by kind, id
    ), each_once as (
      select distinct on (change.source, change.delivery) ${columns}, nearest.steps
      from nearest join change on change.resource_kind = nearest.kind and change.resource_id = nearest.id
      where change.at >= ${within.fromIso}::timestamptz
        and (${within.untilIso ?? null}::timestamptz is null or change.at <= ${within.untilIso ?? null}::timestamptz)
      order by change.source, change.delivery, nearest.steps, change.part
    )
    select *, (count(*) over ())::int as found from each_once order by at desc, id desc limit ${within.limit}`.execute(
    db,
  )
  return { changes: rows.map(({ found: _, ...change }) => change), found: rows[0]?.found ?? 0 }
}

/**
 * Whether any change was ever received. If not, an empty result of `recent_changes` would prove
 * nothing, so the tool is not offered.
 */
export async function hasChanges({ db }: Scope): Promise<boolean> {
  return (await db.selectFrom('change').select('id').limit(1).executeTakeFirst()) !== undefined
}

/** Maximum number of rows that one round deletes, so that no round locks the table for long. */
const maxDropped = 20_000

/** Deletes changes received more than 90 days ago. */
export async function dropOldChanges(db: Db): Promise<void> {
  await sql`
    delete from change where id in (
      select id from change where received_at < ${onceNow} - interval '90 days' limit ${maxDropped})`.execute(db)
}

/**
 * Finds when the problem of an incident began: at the start of its earliest alert, otherwise when
 * it was opened. Null for an unknown incident.
 */
export async function beganAt(db: Db, incidentId: string): Promise<string | null> {
  const { rows } = await sql<{ began: string }>`
    select least(incident.created_at, min(alert.starts_at)) as began
    from incident left join alert on alert.incident_id = incident.id
    where incident.id = ${incidentId} group by incident.created_at`.execute(db)
  return rows[0]?.began ?? null
}
