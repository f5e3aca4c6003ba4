import { systemActor } from '../domain/event.ts'
import { append } from './append.ts'
import type { Trx } from './connect.ts'

const securityRowsPerIncident = 100

/** A forgery or a fenced run, on the incident it was aimed at. Capped, so that a flood of them cannot fill the log. */
export async function recordSecurityEvent(
  trx: Trx,
  incidentId: string,
  event: { code: string; door: string; subject: string; detail: string },
): Promise<void> {
  const { count } = await trx
    .selectFrom('incidentEvent')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('incidentId', '=', incidentId)
    .where('kind', '=', 'security_event')
    .executeTakeFirstOrThrow()
  if (count >= securityRowsPerIncident) return
  await append(trx, incidentId, null, {
    kind: 'security_event',
    actor: systemActor,
    detail: `${event.code} at the door ${event.door}`,
    metadata: event,
  })
}
