import { z } from 'zod'
import { claim, hypothesisFields, maxClaims } from '../domain/claim.ts'
import { recordableAction } from '../domain/event.ts'
import { formatCount, withSpaces } from '../domain/format.ts'
import { certainties, hypothesisStates } from '../domain/hypothesis.ts'
import { escalationCategory, sayableOutcome } from '../domain/incident.ts'
import { toText } from '../domain/say.ts'
import { storedRow, tellRows } from '../domain/told-rows.ts'
import { defineTool, incidentId } from './define.ts'

const timeline = z.looseObject({ items: z.array(storedRow) })

export const getIncident = defineTool({
  name: 'get_incident',
  firstFor: [],
  description: 'Get incident details by ID.',
  input: z.strictObject({ id: incidentId }),
  output: z.looseObject({ id: z.string() }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { id: 'incident' },
  say: ({ id, status }) => `${id} is ${toText(status) || 'known'}`,
  discovers: () => [],
  run: ({ id }, { core, signal }) => core.get(`/api/v1/incidents/${id}`, { signal }),
})

export const listIncidentEvents = defineTool({
  name: 'list_incident_events',
  firstFor: [],
  description: 'Get the event timeline of an incident: who did what, when, and what it found.',
  input: z.strictObject({
    incident_id: incidentId,
    limit: z.number().int().min(1).max(200).default(50).describe('rows, oldest first'),
  }),
  output: z.looseObject({ items: z.array(z.unknown()) }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { incident_id: 'incident' },
  say: ({ items }, { incident_id }) => `${formatCount(items.length, 'row')} of ${incident_id}`,
  discovers: () => [],
  async run({ incident_id, limit }, { core, signal }) {
    const answer = await core.get(`/api/v1/incidents/${incident_id}/events?limit=${limit}`, { signal })
    const rows = answer.ok ? timeline.safeParse(answer.data).data : undefined
    return answer.ok && rows ? { ...answer, data: { ...rows, items: tellRows(rows.items) } } : answer
  },
})

/**
 * Quotes: the schema for the model is short, and the check is complete. The claims of
 * `resolve_incident` show the model the exact shape of a quote.
 */
const quotes = z.array(z.any()).pipe(hypothesisFields.quotes.unwrap())

/** A certainty. Words in a description need fewer bytes than the same words in a schema. */
const certainty = z
  .string()
  .regex(new RegExp(`^(?:${certainties.join('|')})$`))
  .optional()

export const addIncidentEvent = defineTool({
  name: 'add_incident_event',
  description: 'Record a step, finding or cause.',
  input: z.strictObject({
    incident_id: incidentId,
    action: recordableAction.describe('kind'),
    detail: z.string().min(1).max(2000).describe('text'),
    hypothesis: z.enum(hypothesisStates).optional().describe('a cause'),
    quotes: quotes.optional().describe('[{ seq, text }]'),
  }),
  output: z.looseObject({}),
  effect: 'record',
  risk: 'none',
  reversible: true,
  names: { incident_id: 'incident' },
  say: (_output, { detail, hypothesis }) => `recorded${hypothesis ? ` (cause ${hypothesis})` : ''}: ${detail}`,
  discovers: () => [],
  run: ({ incident_id, ...body }, { core, stepKey, signal }) =>
    core.post(`/api/v1/incidents/${incident_id}/events`, body, { idempotencyKey: stepKey, signal }),
})

export const reportCapabilityGap = defineTool({
  name: 'report_capability_gap',
  firstFor: [],
  description: 'Report a tool that this incident would have needed.',
  input: z.strictObject({
    incident_id: incidentId,
    category: z.enum(['investigation', 'remediation', 'notification']).describe('what it is for'),
    description: z.string().min(3).max(1000).describe('what it would do, in sentences'),
  }),
  output: z.looseObject({}),
  effect: 'record',
  risk: 'none',
  reversible: true,
  names: { incident_id: 'incident' },
  say: (_output, { description }) => `a missing tool is reported: ${description}`,
  discovers: () => [],
  run: ({ incident_id, category, description }, { core, stepKey, signal }) =>
    core.post('/api/v1/capability-gaps', { incident_id, category, description }, { idempotencyKey: stepKey, signal }),
})

/** Ends the run. The policy check comes first; then the core API closes the incident. */
export const resolveIncident = defineTool({
  name: 'resolve_incident',
  description: 'End the investigation: resolved.',
  input: z.strictObject({
    id: incidentId,
    resolution: z.string().min(3).max(2000).describe('cause and repair'),
    outcome: sayableOutcome.describe('answered ends a question'),
    claims: z
      .array(claim, 'send claims: [{ kind, text, quotes: [{ seq, text }] }]')
      .min(1)
      .max(maxClaims)
      .describe('why'),
    next_step: z.string().min(3).max(1000).optional().describe('advice'),
    certainty: certainty.describe(
      `${certainties.join(', ')}: of the cause. confirmed needs a write that held or a supported hypothesis, likely an open one`,
    ),
  }),
  output: z.looseObject({}),
  effect: 'terminal',
  risk: 'none',
  reversible: true,
  names: { id: 'incident' },
  say: (_output, { id, outcome }) => `${id} is resolved: ${withSpaces(outcome)}`,
  discovers: () => [],
  run: ({ id, ...body }, { core, stepKey, signal }) =>
    core.post(`/api/v1/incidents/${id}/resolve`, body, { idempotencyKey: stepKey, signal }),
})

export const escalateIncident = defineTool({
  name: 'escalate_incident',
  description: 'End the investigation: a person takes over.',
  input: z.strictObject({
    id: incidentId,
    reason: z.string().min(3).max(2000).describe('found and ruled out'),
    category: escalationCategory.optional().describe('why'),
    next_step: z.string().min(3).max(1000).optional().describe('advice'),
    certainty: certainty.describe('kind'),
  }),
  output: z.looseObject({}),
  effect: 'terminal',
  risk: 'none',
  reversible: true,
  names: { id: 'incident' },
  say: (_output, { id }) => `${id} is escalated`,
  discovers: () => [],
  run: ({ id, ...body }, { core, stepKey, signal }) =>
    core.post(`/api/v1/incidents/${id}/escalate`, body, { idempotencyKey: stepKey, signal }),
})
