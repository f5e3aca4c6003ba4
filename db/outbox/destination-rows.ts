import { sql } from 'kysely'
import {
  type Destination,
  type DestinationDelivery,
  type DestinationPut,
  type DestinationSecrets,
  destinationPrefix,
  requiredSecret,
  secretPlaceOf,
  shownAddressOf,
} from '../../domain/destination.ts'
import { digestOf } from '../../domain/digest.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import { type Scope, systemScope } from '../scope.ts'

/** Lists destinations by name. */
export async function listDestinations({ db }: Scope): Promise<Destination[]> {
  return (await db.selectFrom('destination').selectAll().orderBy('name').execute()) as Destination[]
}

export async function destinationByName({ db }: Scope, name: string): Promise<Destination | null> {
  const row = await db.selectFrom('destination').selectAll().where('name', '=', name).executeTakeFirst()
  return (row as Destination | undefined) ?? null
}

/** Thrown if a required secret is missing: it was not given, or was given for another address. */
export class SecretAsked extends Error {
  override name = 'SecretAsked' as const
  readonly secret: string
  readonly isElsewhere: boolean
  constructor(secret: string, isElsewhere: boolean) {
    super(`the secret ${secret} is asked for`)
    this.secret = secret
    this.isElsewhere = isElsewhere
  }
}

/**
 * Creates or changes the destination with this name. Absent secrets are kept if the address does
 * not change. Throws SecretAsked.
 */
export async function putDestination(db: Db, name: string, put: DestinationPut, who: string): Promise<Destination> {
  return await db.transaction().execute(async (trx) => {
    // Locks the name, so that the second of two callers sees the row that the first wrote.
    await sql`select pg_advisory_xact_lock(hashtextextended(${`destination ${name}`}, 0))`.execute(trx)
    const before = await destinationByName(systemScope(trx), name)
    const row = {
      kind: put.kind,
      options: JSON.stringify(put.options),
      secrets: JSON.stringify(secretsAfter(before, put)),
      route: JSON.stringify(put.route),
      enabled: put.enabled,
      updatedAt: now,
    }
    await trx
      .insertInto('destination')
      .values({ name, ...row, createdBy: who })
      .onConflict((conflict) => conflict.column('name').doUpdateSet(row))
      .execute()
    const stored = (await destinationByName(systemScope(trx), name)) as Destination
    const detail = `${before ? 'Changed' : 'Added'}: ${describeDestination(stored)}`
    await recordAudit(trx, { who, what: 'destination.put', subject: name, detail })
    return stored
  })
}

function secretsAfter(before: Destination | null, put: DestinationPut): DestinationSecrets {
  const given = Object.entries(put.secrets) as [keyof DestinationSecrets, string | null | undefined][]
  const kept = before?.kind === put.kind ? before.secrets : {}
  const secrets: DestinationSecrets = { ...kept }
  for (const [secret, value] of given) {
    if (value === null) delete secrets[secret]
    else if (value !== undefined) secrets[secret] = value
  }
  const signsIn = put.kind === 'email' && put.options.user !== null
  const required = signsIn ? 'password' : requiredSecret[put.kind]
  if (required && !secrets[required]) throw new SecretAsked(required, false)
  const isElsewhere = before !== null && secretPlaceOf(before) !== secretPlaceOf(put)
  const isGiven = (secret: string) => given.some(([each, value]) => each === secret && value)
  // Excludes the secret that verifies incoming requests, because it is never sent.
  const moved = Object.keys(secrets).find((secret) => secret !== 'webhookSecret' && !isGiven(secret))
  if (isElsewhere && moved) throw new SecretAsked(moved, true)
  return secrets
}

/** Describes a destination for the audit log, without credentials. */
function describeDestination(destination: Destination): string {
  const { kind, options, route, enabled } = destination
  const where = shownAddressOf(destination)
  const words = Object.entries(route).flatMap(([part, value]) =>
    value === null ? [] : [`${part} ${JSON.stringify(value)}`],
  )
  return `${kind} to ${where}${enabled ? '' : ', switched off'}; ${words.join(', ') || 'everything'}; options ${digestOf(options).slice(0, 12)}`
}

/**
 * Removes a destination; its waiting messages are dropped when their turn comes. False if no
 * destination has this name.
 */
export async function removeDestination(db: Db, name: string, who: string): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    const removed = await trx.deleteFrom('destination').where('name', '=', name).returning('kind').executeTakeFirst()
    if (!removed) return false
    await recordAudit(trx, { who, what: 'destination.removed', subject: name, detail: 'Removed' })
    return true
  })
}

/** Lists every attempt to deliver a message to this destination, newest first. */
export async function deliveriesTo(
  { db }: Scope,
  name: string,
  page: { before: number | null; limit: number },
): Promise<DestinationDelivery[]> {
  let query = db
    .selectFrom('delivery')
    .select(['id', 'messageId', 'incidentId', 'attempt', 'status', 'responseStatus', 'response'])
    .select(['createdAt', 'finishedAt'])
    .select(sql<string>`coalesce(notification->>'trigger', '')`.as('trigger'))
    .select(sql<string>`coalesce(notification->'incident'->>'title', '')`.as('title'))
    .where('destination', '=', `${destinationPrefix}${name}`)
    .where('destination', 'like', sql.lit(`${destinationPrefix}%`))
    .orderBy('id', 'desc')
    .limit(page.limit)
  if (page.before !== null) query = query.where('id', '<', page.before)
  return await query.execute()
}

/**
 * Whether the destination ever got a message about this incident. Otherwise actions at the
 * destination do not concern the incident.
 */
export async function hasHeard(db: Db | Trx, name: string, incidentId: string): Promise<boolean> {
  return (await firstMessage(db, `${destinationPrefix}${name}`, incidentId)) !== null
}

/**
 * Whether later messages of the incident refer to this message at the destination. The result is
 * equal for every attempt to deliver.
 */
export async function isFirstOfThread(
  db: Db,
  { destination, incidentId, messageId }: { destination: string; incidentId: string; messageId: string },
): Promise<boolean> {
  return (await firstMessage(db, destination, incidentId)) === messageId
}

/**
 * Whether a message is part of its incident's thread. A message about several incidents or about
 * Nightshift is stored with one incident, but is not part of its thread. A page that was not needed
 * was never sent.
 */
export const isOfThread = sql<boolean>`coalesce(jsonb_array_length(notification->'incidents'), 0) = 0
  and notification->>'trigger' not in ('notice', 'duty', 'morning', 'hand_over') and released_why is distinct from 'repaired'`

async function firstMessage(db: Db | Trx, destination: string, incidentId: string): Promise<string | null> {
  const row = await db
    .selectFrom('delivery')
    .select('messageId')
    .where('incidentId', '=', incidentId)
    .where('destination', '=', destination)
    .where(isOfThread)
    .orderBy('createdAt')
    .orderBy('messageId')
    .limit(1)
    .executeTakeFirst()
  return row?.messageId ?? null
}
