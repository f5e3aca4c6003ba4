import { alertsOf } from '../../db/alerts.ts'
import { listIncidents } from '../../db/incidents.ts'
import { withSpaces } from '../../domain/format.ts'
import { type Incident, type IncidentStatus, incidentActions, runningStatuses } from '../../domain/incident.ts'
import { type PersonAction, personAction, surroundings } from '../../domain/incident-detail.ts'
import { type Permission, type Principal, permissionsOf } from '../../domain/operator.ts'
import { investigationId } from '../../domain/step-key.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint, type Router } from '../http/endpoint.ts'
import { incidentExample, incidentId } from './examples.ts'
import { incidentParams, requireIncident } from './incidents.ts'

const permissionOf: Record<PersonAction, Permission> = {
  resolve: 'record',
  escalate: 'record',
  comment: 'record',
  tell: 'record',
  cancel: 'manage_incident',
  take: 'manage_incident',
  give_back: 'manage_incident',
  expected: 'manage_incident',
  investigate: 'manage_incident',
}

/** A group may hold thousands of followers: the page lists these and links to the rest. */
const shownOfGroup = 50

export function incidentSurroundingsRoutes(router: Router, deps: ApiDeps): void {
  const { db } = deps
  endpoint(router, deps, {
    method: 'get',
    path: '/incidents/{id}/surroundings',
    permission: 'read',
    tag: 'incidents',
    summary: 'What stands around an incident: alerts, its group, its run, and what the caller may do now',
    description: '`refused` says why an action is not possible now, by the caller or at all; null when it is.',
    params: incidentParams,
    answer: surroundings,
    example: {
      alerts: [],
      group: [{ id: incidentId, title: incidentExample.title, status: 'investigating', role: 'leader' }],
      workflow: { id: `investigate:${incidentId}:1`, url: null },
      actions: [{ action: 'cancel', refused: null }],
    },
    problems: [404],
    async run({ scope, params: { id }, principal }) {
      const found = await requireIncident(scope, id)
      const [alerts, group] = await Promise.all([
        alertsOf(db, id),
        found.groupId ? listIncidents(scope, { group: found.groupId }, { before: null, limit: shownOfGroup }) : [],
      ])
      return {
        alerts: alerts.map(({ raw, ...each }) => ({ ...each, title: titleOf(raw) ?? each.name })),
        group: group.map(({ id, title, status, role }) => ({ id, title, status, role })),
        workflow: workflowOf(deps, found),
        actions: personAction.options.map((each) => ({ action: each, refused: refusal(each, found, principal) })),
      }
    },
  })
}

function titleOf(raw: unknown): string | null {
  const { title } = (raw ?? {}) as { title?: unknown }
  return typeof title === 'string' ? title : null
}

/** The newest run, with its page where Temporal has one. */
function workflowOf({ temporalPage }: ApiDeps, { id, attempt }: Incident) {
  if (attempt === 0) return null
  const workflowId = investigationId({ incidentId: id, attempt })
  if (!temporalPage) return { id: workflowId, url: null }
  const path = `/namespaces/${encodeURIComponent(temporalPage.namespace)}/workflows/${encodeURIComponent(workflowId)}`
  return { id: workflowId, url: new URL(path, temporalPage.url).href }
}

function refusal(each: PersonAction, found: Incident, principal: Principal): string | null {
  const permission = permissionOf[each]
  if (!permissionsOf(principal).includes(permission))
    return `Your role (${principal.role}) lacks the permission ${permission}.`
  return refusedByState(each, found, principal)
}

function refusedByState(each: PersonAction, found: Incident, principal: Principal): string | null {
  const { status, owner, keptReason } = found
  switch (each) {
    case 'comment':
    case 'expected':
      return null
    case 'tell':
      return runningStatuses.includes(status) ? null : `It is ${withSpaces(status)}: no run reads it. Add a note.`
    case 'give_back':
      return owner ? null : 'Nobody has it: there is nothing to give back.'
    case 'take':
      if (owner && owner.id === principal.operatorId) return 'You have it already.'
      return refusedByStatus(each, status)
    case 'investigate':
      if (status !== 'open') return refusedByStatus(each, status)
      return keptReason === null ? 'It is queued already.' : null
    default:
      return refusedByStatus(each, status)
  }
}

function refusedByStatus(each: keyof typeof incidentActions, status: IncidentStatus): string | null {
  const allowed: readonly IncidentStatus[] = incidentActions[each]
  return allowed.includes(status)
    ? null
    : `It is ${withSpaces(status)}: this needs ${allowed.map(withSpaces).join(' or ')}.`
}
