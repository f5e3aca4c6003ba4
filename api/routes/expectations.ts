import { z } from '@hono/zod-openapi'
import { alertsOf } from '../../db/alerts/alerts.ts'
import {
  type ExpectationSubject,
  endExpectation,
  listExpectations,
  markIncidentExpected,
} from '../../db/alerts/expectations.ts'
import { type Expectation, expectation, expectationSubject } from '../../domain/expectation.ts'
import type { Incident } from '../../domain/incident.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { typesOf } from '../../domain/permissions.ts'
import { type ApiDeps, requirePerson } from '../deps.ts'
import { writtenText } from '../http/body.ts'
import { pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { moment } from '../http/moments.ts'
import { notFound, Problem } from '../http/problem.ts'
import { nothingFires } from './incident-surroundings.ts'
import { incidentParams, requireIncident } from './incidents.ts'
import { readResourceState } from './resource-state.ts'

const tag = 'incidents'
const maxDays = 366
const tellWithinMs = 2_000

const example: Expectation = {
  id: 'exp_01kaabbccddeeffgghhjjkkmmn',
  subject: 'alert',
  about: 'alertmanager d0735916ffe8d871',
  until: '2026-12-01T00:00:00.000000Z',
  reason: 'The backup window makes the replica lag every night.',
  state: { health: 'nominal', observed: 'node node-db-osl-1b is nominal', fields: { status: 'nominal' } },
  createdBy: 'admin',
  createdAt: '2026-11-22T03:00:00.000000Z',
  endedAt: null,
  inForce: true,
}

const expectEndpoint = endpoint({
  method: 'post',
  path: '/incidents/{id}/expected',
  permission: 'manage_incident',
  tag,
  summary: 'Marks an alert as expected until a date',
  description:
    'The incident ends as `expected`. The current state of its resource is stored. When the alert fires again, code reads that state: if nothing differs, the incident ends as `expected`; otherwise the incident is handled normally. `alert` covers this alert, `resource` all alerts on the resource, `type` all incidents of the type.',
  params: incidentParams,
  body: z.strictObject({
    subject: expectationSubject.default('alert'),
    until: moment,
    reason: writtenText(3, 2000),
  }),
  bodyExample: { subject: 'alert', until: '2026-12-01T00:00:00Z', reason: example.reason },
  answer: expectation,
  example,
  status: 201,
  problems: [404, 409],
  async run({ scope, params: { id }, body: { subject, until, reason }, actor, principal }, deps) {
    const by = requirePerson(principal, actor)
    requireAhead(until)
    if (subject === 'resource' && typesOf(principal)) {
      throw new Problem(
        403,
        'OUT_OF_SCOPE',
        'A mark on a resource covers incidents of all types. This token covers only some types.',
      )
    }
    const incident = await requireIncident(scope, id)
    if (incident.type === manualChangeType) throw new Problem(409, 'CONFLICT', nothingFires)
    const about = await subjectOf(deps, incident, subject)
    const state = incident.resource
      ? await readResourceState(scope, deps, incident.resource)
      : { health: 'nominal', observed: 'the incident has no resource whose state can be read', fields: {} }
    if (state.health === 'unknown') {
      throw new Problem(
        409,
        'UNREADABLE',
        `The state of the resource cannot be read, so later states could not be compared: ${state.observed}. Try again when the state can be read.`,
      )
    }
    const stored = { ...state, severity: incident.severity, resource: incident.resource }
    const made = await deps.db
      .transaction()
      .execute((trx) => markIncidentExpected(trx, id, { ...about, until, reason, state: stored }, by))
    if (made.run) await deps.runs.tell(made.run, 'cancelInvestigation', tellWithinMs)
    return toExpectation({ ...made.expectation, inForce: true }, by.name)
  },
})

const listExpectationsEndpoint = endpoint({
  method: 'get',
  path: '/expectations',
  permission: 'read',
  tag,
  summary: 'Marks of expected alerts, marks in force first',
  query: z.object({ limit: z.coerce.number().int().min(1).max(200).default(100) }),
  answer: pageOf(expectation),
  example: { items: [example], nextCursor: null },
  async run({ scope, query: { limit } }) {
    const rows = await listExpectations(scope, limit)
    return { items: rows.map((row) => toExpectation(row, row.createdByName)), nextCursor: null }
  },
})

const endExpectationEndpoint = endpoint({
  method: 'post',
  path: '/expectations/{id}/end',
  permission: 'manage_incident',
  tag,
  summary: 'Ends a mark: its alerts are handled normally from now on',
  params: z.object({ id: z.string().regex(/^exp_[0-9a-z]{26}$/) }),
  answer: expectation,
  example: { ...example, inForce: false },
  problems: [404],
  async run({ params: { id }, actor, principal }, { db }) {
    const by = requirePerson(principal, actor)
    const ended = await endExpectation(db, id, by)
    if (!ended) throw notFound(`mark ${id} in force`)
    return toExpectation({ ...ended, inForce: false }, by.name)
  },
})

function requireAhead(until: string): void {
  const aheadMs = Date.parse(until) - Date.now()
  if (aheadMs > 0 && aheadMs <= maxDays * 86_400_000) return
  throw new Problem(422, 'UNTIL_OUT_OF_RANGE', `\`until\` must be in the future, at most ${maxDays} days.`)
}

async function subjectOf(
  { db }: ApiDeps,
  incident: Incident,
  subject: 'alert' | 'resource' | 'type',
): Promise<ExpectationSubject> {
  if (subject === 'type') return { subject, type: incident.type }
  if (subject === 'resource') {
    if (!incident.resource)
      throw new Problem(409, 'NO_RESOURCE', `${incident.id} has no resource: mark its alert or its type.`)
    return { subject, resourceKind: incident.resource.kind, resourceId: incident.resource.id }
  }
  const alert = (await alertsOf(db, incident.id)).at(-1)
  if (!alert) throw new Problem(409, 'NO_ALERT', `${incident.id} has no alert: mark its type.`)
  return { subject, source: alert.source, fingerprint: alert.fingerprint }
}

type Row = Awaited<ReturnType<typeof listExpectations>>[number]

function toExpectation(row: Omit<Row, 'createdByName'>, createdBy: string) {
  const { id, subject, until, reason, state, createdAt, endedAt, inForce } = row
  const about = {
    alert: `${row.source} ${row.fingerprint}`,
    resource: `${row.resourceKind}:${row.resourceId}`,
    type: row.type ?? '',
  }[subject]
  return { id, subject, about, until, reason, state, createdBy, createdAt, endedAt, inForce }
}

export const expectationRoutes = [expectEndpoint, listExpectationsEndpoint, endExpectationEndpoint]
