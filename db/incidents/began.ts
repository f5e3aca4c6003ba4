import { sql } from 'kysely'
import { z } from 'zod'
import type { Incident } from '../../domain/incident.ts'
import type { Db } from '../connect.ts'
import { bodyText } from '../log/bodies.ts'

const ruleOfContext = z.looseObject({
  rule: z.looseObject({
    forSeconds: z
      .number()
      .min(0)
      .max(7 * 86_400),
  }),
})

/**
 * Finds when the problem of an incident began: the first start of an alert that a sender gave,
 * minus the time for which the alert's rule waits, as the newest context contains it.
 */
export async function findBegan(db: Db, { id, createdAt }: Pick<Incident, 'id' | 'createdAt'>): Promise<number> {
  const [first, context] = await Promise.all([
    db
      .selectFrom('alert')
      .select((build) => build.fn.min('startsAt').as('startsAt'))
      .where('incidentId', '=', id)
      .where('startGiven', '=', true)
      .executeTakeFirst(),
    db
      .selectFrom('incidentEvent')
      .select(sql<string>`metadata -> 'context' ->> 'digest'`.as('digest'))
      .where('incidentId', '=', id)
      .where('kind', '=', 'context_assembled')
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirst(),
  ])
  const startedMs = first?.startsAt ? Date.parse(first.startsAt) : Number.POSITIVE_INFINITY
  const forSeconds = context ? readFor(await bodyText(db, context.digest).catch(() => '')) : 0
  return Math.min(startedMs, Date.parse(createdAt)) - forSeconds * 1_000
}

function readFor(text: string): number {
  try {
    return ruleOfContext.parse(JSON.parse(text)).rule.forSeconds
  } catch {
    // Returns 0 if the stored context names no rule of the alert.
    return 0
  }
}
