import type { Hono } from 'hono'
import { operatorElsewhere } from '../../db/access/operators.ts'
import { databaseTime } from '../../db/clock.ts'
import { noteActElsewhere } from '../../db/incidents/acts-elsewhere.ts'
import { takeIncident } from '../../db/incidents/owners.ts'
import { destinationByName, hasHeard } from '../../db/outbox/destination-rows.ts'
import { takeRequest } from '../../db/outbox/slack-requests.ts'
import { systemScope } from '../../db/scope.ts'
import { destinationName } from '../../domain/destination.ts'
import { permissions } from '../../domain/permissions.ts'
import { isSigned, type PagerdutyAct, readWebhook } from '../../notify/pagerduty/webhook.ts'
import type { ApiDeps, Env } from '../deps.ts'
import { limitBody } from '../http/middleware.ts'
import { Problem } from '../http/problem.ts'
import { afterFailure } from '../http/rate-limits.ts'
import { finishTake } from './incident-endings.ts'

/** Receives actions of people at PagerDuty, which are signed with the destination's secret. */

/** The result of a person's action at PagerDuty. */
type Taken = { outcome: 'taken' | 'recorded' | 'ignored'; why: string }

/**
 * Maximum age of an accepted request in milliseconds. PagerDuty retries for twenty minutes, and
 * Nightshift remembers a request for an hour.
 */
const maxAgeMs = 50 * 60_000

const path = '/api/v1/ingest/pagerduty/:name'

/**
 * The route for PagerDuty's V3 webhooks. Accepts only requests that are signed with the
 * destination's secret; a token or cookie has no effect. Runs before token authentication.
 */
export function pagerdutyRoutes(app: Hono<Env>, deps: ApiDeps): void {
  app.use(path, limitBody)
  app.post(path, async (c) => {
    const name = destinationName.safeParse(c.req.param('name')).data ?? ''
    const destination = await destinationByName(systemScope(deps.db), name)
    const bytes = new Uint8Array(await c.req.arrayBuffer())
    const secret = destination?.kind === 'pagerduty' ? destination.secrets.webhookSecret : undefined
    // Computes the signature and returns one response, whether or not the destination exists.
    const isProven = isSigned(secret ?? '', c.req.header('x-pagerduty-signature'), bytes)
    if (!secret || !isProven) {
      deps.log.warn({ destination: name }, 'a webhook of PagerDuty has no valid signature')
      const flood = await afterFailure(deps.db, c)
      if (flood) throw flood
      const detail = 'No destination of kind pagerduty with that name has the secret of this webhook.'
      throw new Problem(401, 'NOT_PROVEN', detail)
    }
    const read = readWebhook(bytes)
    if (!read)
      throw new Problem(
        400,
        'UNPARSABLE',
        'The request is not a V3 webhook of PagerDuty: {"event": {"id", "event_type", …}}.',
      )
    return c.json('ignored' in read ? ignored(read.ignored) : await handle(deps, name, read.act), 202)
  })
}

const ignored = (why: string): Taken => ({ outcome: 'ignored', why })

async function handle(deps: ApiDeps, name: string, act: PagerdutyAct): Promise<Taken> {
  const { db } = deps
  const age = Date.parse(await databaseTime(db)) - Date.parse(act.occurredAt)
  if (Math.abs(age) > maxAgeMs)
    return ignored('the time of the event differs from the current time by more than 50 minutes')
  if (!(await hasHeard(db, name, act.incidentId)))
    return ignored('this destination never got a message about this incident')
  const operator = act.agent?.isPerson ? await operatorElsewhere(db, 'pagerdutyUserId', act.agent.id) : null
  const by = operator && { operatorId: operator.id, actor: `user:${operator.name}`, name: operator.name }
  const mayTake = operator?.disabledAt === null && permissions[operator.role].includes('manage_incident')
  const said = act.agent ? `${act.agent.name} (${act.agent.id})` : 'Somebody'
  const noted = await db.transaction().execute(async (trx) => {
    if (!(await takeRequest(trx, `pagerduty ${name} ${act.eventId}`))) return null
    const written = await noteActElsewhere(trx, act.incidentId, { act: act.act, by, said })
    const takes = act.act === 'acknowledged' && mayTake && written.mayBeTaken
    return { ...written, taken: by && takes ? await takeIncident(trx, act.incidentId, by) : null }
  })
  if (!noted) return ignored('the same event arrived before')
  if (!noted.isNews) return ignored(noted.text)
  if (!by || !noted.taken) return { outcome: 'recorded', why: noted.text }
  await finishTake(deps, act.incidentId, by, noted.taken)
  return { outcome: 'taken', why: `${by.name} takes the incident` }
}
