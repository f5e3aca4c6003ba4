import { z } from '@hono/zod-openapi'
import { alertsOf } from '../../db/alerts/alerts.ts'
import { briefSources } from '../../db/incidents/brief.ts'
import { listIncidents } from '../../db/incidents/incidents.ts'
import { requesterOf } from '../../db/incidents/manual-change.ts'
import { similarOf } from '../../db/incidents/precedents.ts'
import { clusterSourcesOf } from '../../db/inventory/cluster-sources.ts'
import { databaseSourcesOf } from '../../db/inventory/database-sources.ts'
import { logSubjectOf } from '../../db/inventory/log-subject.ts'
import { listSources } from '../../db/inventory/sources.ts'
import { foldBrief, servedBrief } from '../../domain/brief.ts'
import { logFile } from '../../domain/device.ts'
import { withSpaces } from '../../domain/format.ts'
import { type Incident, type IncidentStatus, incidentActions, runningStatuses } from '../../domain/incident.ts'
import { type PersonAction, personAction, surroundings } from '../../domain/incident-detail.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { type Permission, type Principal, permissionsOf } from '../../domain/permissions.ts'
import { clusterFacts, databaseFacts, lastLogs } from '../../domain/source.ts'
import { investigationId } from '../../domain/step-key.ts'
import { trustLostType } from '../../domain/trust.ts'
import { listLogFiles } from '../../effects/devices/log-files.ts'
import { readContext } from '../../sources/kinds.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { briefExample, incidentExample, incidentId } from './examples.ts'
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
  review: 'decide',
}

/**
 * Maximum number of members of a group that the page lists. A group may have thousands of
 * followers.
 */
const shownOfGroup = 50

const ofIncident = z.object({ id: z.string().regex(/^inc_[0-9a-z]{26}$/) })
const ruleAnswer = z.object({ rule: z.looseObject({ source: z.string(), expression: z.string() }).nullable() })

const ruleEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/rule',
  permission: 'read',
  tag: 'incidents',
  summary: 'The expression of the newest alert of an incident, evaluated by its source',
  params: ofIncident,
  answer: ruleAnswer,
  example: {
    rule: { source: 'main', rule: 'DiskFull', expression: 'disk_used_percent > 90', threshold: '> 90', value: 97.2 },
  },
  problems: [404],
  async run({ params: { id } }, deps) {
    const alert = (await alertsOf(deps.db, id)).at(-1)
    if (!alert) return { rule: null }
    const told = await readContext('rule', await listSources(deps.db), alert, deps.sources)
    // Leaves out a source that does not respond, because the health of the source already shows
    // this.
    const found = told.find((each) => !('notRead' in each)) ?? null
    return { rule: found as z.input<typeof ruleAnswer>['rule'] }
  },
})

const logsEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/logs',
  permission: 'read',
  tag: 'incidents',
  summary: "The last log lines of an incident's resource, from the sources of logs",
  description:
    'The newest line of each kind in the last hour, eight at most, 1 kB. Code chooses the labels: names of the resource in the registry, and labels of its newest alert. A source that does not answer within four seconds is listed with `notRead`.',
  params: ofIncident,
  answer: z.object({ items: lastLogs }),
  example: {
    items: [
      { source: 'logs', labels: { host: 'web-1' }, lines: ['11:59:58 ERROR pool exhausted (60 such lines)'] },
      { source: 'archive', notRead: 'archive cannot be reached' },
    ],
  },
  problems: [404],
  async run({ scope, params: { id } }, deps) {
    await requireIncident(scope, id)
    const subject = await logSubjectOf(scope, id)
    return { items: subject ? await readContext('lines', await listSources(deps.db), subject, deps.sources) : [] }
  },
})

const logFilesEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/log-files',
  permission: 'read',
  tag: 'incidents',
  summary: 'The log files that the agent of the resource of an incident may read, newest first',
  description:
    "At most six files, from the agent's directories named `log` or `logs`, or from such directories directly below its other directories. No log is read. The list is empty if the resource has no agent.",
  params: ofIncident,
  answer: z.object({ items: z.array(logFile) }),
  example: { items: [{ path: '/srv/web/logs/app.log', bytes: 48_213, changed: '2026-11-21T11:59:58.120Z' }] },
  problems: [404],
  async run({ scope, params: { id } }, deps) {
    const { resource } = await requireIncident(scope, id)
    return { items: resource && deps.mesh ? await listLogFiles(deps, resource) : [] }
  },
})

const databasesEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/databases',
  permission: 'read',
  tag: 'incidents',
  summary: 'The current state of the database servers that an incident may involve, as lines of text',
  description:
    'Covers the server of the incident, or the servers on its machine, then their replication partners: at most three servers, 1 kB each, with blocking sessions, connections, replication, long transactions, and changes within the last hour. A server that does not answer is listed with `notRead`.',
  params: ofIncident,
  answer: z.object({ items: databaseFacts }),
  example: {
    items: [
      { source: 'pg-1', facts: ['PostgreSQL 15.18, primary', '97 of 100 connections in use (3 for superusers)'] },
      { source: 'pg-2', notRead: 'pg-2 cannot be reached: ECONNREFUSED' },
    ],
  },
  problems: [404],
  async run({ scope, params: { id } }, deps) {
    const { resource } = await requireIncident(scope, id)
    const names = resource ? await databaseSourcesOf(scope.db, resource) : []
    const sources = await listSources(deps.db)
    const named = names.flatMap((name) => sources.find((each) => each.name === name) ?? [])
    return { items: await readContext('database', named, {}, deps.sources) }
  },
})

const clusterEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/cluster',
  permission: 'read',
  tag: 'incidents',
  summary: "The current state of an incident's resource in its cluster, as lines of text",
  description:
    'For a workload, node, namespace, volume claim, service or ingress of Kubernetes, 1.5 kB: conditions, terminations of earlier containers, the newest rollout and its changes, the last events, grouped. A cluster that does not answer is listed with `notRead`.',
  params: ofIncident,
  answer: z.object({ items: clusterFacts }),
  example: {
    items: [
      {
        source: 'prod',
        facts: [
          'Deployment shop/web: 1 of 3 pods ready, 2 wanted; not ready: 2 CrashLoopBackOff',
          'newest rollout: revision 2 at 2026-11-21T11:30:00Z: container app image: web:1 → web:2',
        ],
      },
    ],
  },
  problems: [404],
  async run({ scope, params: { id } }, deps) {
    const { resource } = await requireIncident(scope, id)
    if (!resource) return { items: [] }
    const [known, sources, alerts] = await Promise.all([
      clusterSourcesOf(scope.db, resource),
      listSources(deps.db),
      alertsOf(deps.db, id),
    ])
    const { exported_pod: exported, pod = null } = alerts.at(-1)?.labels ?? {}
    const told = known.map(({ source, name }) => {
      const named = sources.filter((each) => each.name === source)
      return readContext('cluster', named, { ...resource, name, pod: exported ?? pod }, deps.sources)
    })
    return { items: (await Promise.all(told)).flat() }
  },
})

const briefEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/brief',
  permission: 'read',
  tag: 'incidents',
  summary: 'The brief of an incident: start, cause, impact, what was done, the waiting approval, what comes next',
  description:
    'Code builds the brief from the log; `rows` are the numbers of the rows behind a sentence. `asked` is the waiting approval, without the details of its dry run. `similar` are closed incidents of the same type with their repairs.',
  params: incidentParams,
  answer: servedBrief,
  example: briefExample,
  problems: [404],
  async run({ scope, params: { id } }) {
    const found = await requireIncident(scope, id)
    const [sources, similar] = await Promise.all([briefSources(scope, found), similarOf(scope, found)])
    return { ...foldBrief(sources), similar }
  },
})

function titleOf(raw: unknown): string | null {
  const { title } = (raw ?? {}) as { title?: unknown }
  return typeof title === 'string' ? title : null
}

/** Returns the newest run of an incident, with its page at Temporal if there is one. */
function workflowOf({ temporalPage }: ApiDeps, { id, attempt }: Incident) {
  if (attempt === 0) return null
  const workflowId = investigationId({ incidentId: id, attempt })
  if (!temporalPage) return { id: workflowId, url: null }
  const path = `/namespaces/${encodeURIComponent(temporalPage.namespace)}/workflows/${encodeURIComponent(workflowId)}`
  return { id: workflowId, url: new URL(path, temporalPage.url).href }
}

/** Why a person's direct write cannot be marked as expected. */
export const nothingFires = "This is a person's own write, so there is no alert that could be expected."

/** Returns why a person may not take this action. `isOwn`: this person made the write. */
function refusal(each: PersonAction, found: Incident, principal: Principal, isOwn: boolean): string | null {
  const permission = permissionOf[each]
  if (!permissionsOf(principal).includes(permission))
    return `Your role (${principal.role}) lacks the permission ${permission}.`
  if (each === 'review' && isOwn) return 'You did this write, so somebody else has to review it.'
  return refusedByState(each, found, principal)
}

function refusedByState(each: PersonAction, found: Incident, principal: Principal): string | null {
  const { status, owner, keptReason } = found
  switch (each) {
    case 'comment':
      return null
    case 'expected':
      return found.type === manualChangeType ? nothingFires : null
    case 'tell':
      if (found.type === manualChangeType)
        return "This is a person's own write, so no agent reads a message. Add a note."
      return runningStatuses.includes(status)
        ? null
        : `The incident is ${withSpaces(status)}, so no run reads a message. Add a note.`
    case 'give_back':
      return owner ? null : 'Nobody has taken the incident, so there is nothing to give back.'
    case 'take':
      if (owner && owner.id === principal.operatorId) return 'You have the incident already.'
      return refusedByStatus(each, status)
    case 'review':
      return found.reviewWantedAt === null ? 'No review of the incident is pending.' : null
    case 'investigate':
      if (found.type === manualChangeType) return "This is a person's own write, so there is nothing to investigate."
      if (found.type === trustLostType) return 'The incident is about Nightshift itself, so no agent investigates it.'
      if (status !== 'open') return refusedByStatus(each, status)
      return keptReason === null ? 'The incident is queued already.' : null
    default:
      return refusedByStatus(each, status)
  }
}

function refusedByStatus(each: keyof typeof incidentActions, status: IncidentStatus): string | null {
  const allowed: readonly IncidentStatus[] = incidentActions[each]
  return allowed.includes(status)
    ? null
    : `The incident is ${withSpaces(status)}, and this action needs the status ${allowed.map(withSpaces).join(' or ')}.`
}

export const incidentSurroundingsRoutes = [
  ruleEndpoint,
  logsEndpoint,
  logFilesEndpoint,
  databasesEndpoint,
  clusterEndpoint,
  briefEndpoint,
  endpoint({
    method: 'get',
    path: '/incidents/{id}/surroundings',
    permission: 'read',
    tag: 'incidents',
    summary: 'The surroundings of an incident: alerts, its group, its run, and what the caller may do now',
    description: '`refused` is the reason why the caller cannot do an action now, or null.',
    params: incidentParams,
    answer: surroundings,
    example: {
      alerts: [],
      group: [{ id: incidentId, title: incidentExample.title, status: 'investigating', role: 'leader' }],
      workflow: { id: `investigate:${incidentId}:1`, url: null },
      actions: [{ action: 'cancel', refused: null }],
    },
    problems: [404],
    async run({ scope, params: { id }, principal }, deps) {
      const found = await requireIncident(scope, id)
      const isWaiting = found.reviewWantedAt !== null
      const [alerts, group, own] = await Promise.all([
        alertsOf(deps.db, id),
        found.groupId ? listIncidents(scope, { group: found.groupId }, { before: null, limit: shownOfGroup }) : [],
        isWaiting ? requesterOf(deps.db, id) : null,
      ])
      const isOwn = own !== null && own.operatorId === principal.operatorId
      return {
        alerts: alerts.map(({ raw, ...each }) => ({ ...each, title: titleOf(raw) ?? each.name })),
        group: group.map(({ id, title, status, role }) => ({ id, title, status, role })),
        workflow: workflowOf(deps, found),
        actions: personAction.options.map((each) => ({
          action: each,
          refused: refusal(each, found, principal, isOwn),
        })),
      }
    },
  }),
]
