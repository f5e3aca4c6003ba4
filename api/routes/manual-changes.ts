import { z } from '@hono/zod-openapi'
import { reviewManualChange } from '../../db/incidents/manual-change.ts'
import { incident, reviewVerdict } from '../../domain/incident.ts'
import { requirePerson } from '../deps.ts'
import { writtenText } from '../http/body.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { incidentExample } from './examples.ts'
import { requireIncident } from './incidents.ts'

/** Routes for the review of a write that an admin made alone. Another person reviews the write. */
export const manualChangeRoutes = endpoint({
  method: 'post',
  path: '/incidents/{id}/review',
  permission: 'decide',
  tag: 'incidents',
  summary: 'Reviews a write that an admin did without a second person',
  description:
    'A person other than the admin must review the write. Until then, Home lists the write. The log and the audit each get a row.',
  params: z.object({ id: z.string().max(100) }),
  body: z.strictObject({ verdict: reviewVerdict, text: writtenText(3, 1_000) }),
  bodyExample: { verdict: 'right', text: 'The pool would have been lost.' },
  answer: incident,
  example: { ...incidentExample, type: 'manual_change' },
  problems: [404, 409],
  async run({ scope, params: { id }, body, principal, actor }, deps) {
    const reviewed = await reviewManualChange(deps.db, requirePerson(principal, actor), id, body)
    if (reviewed.outcome === 'not_found') throw notFound(`incident ${id}`)
    if (reviewed.outcome !== 'reviewed') {
      const status = { conflict: 409, forbidden: 403 }[reviewed.outcome]
      throw new Problem(status, reviewed.outcome.toUpperCase(), `${reviewed.message}.`)
    }
    return await requireIncident(scope, id)
  },
})
