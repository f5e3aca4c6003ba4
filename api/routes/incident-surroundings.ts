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

/** A group may hold thousands of followers: the page lists these and links to the rest. */
const shownOfGroup = 50

const ofIncident = z.object({ id: z.string().regex(/^inc_[0-9a-z]{26}$/) })
const ruleAnswer = z.object({ rule: z.looseObject({ source: z.string(), expression: z.string() }).nullable() })

const ruleEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/rule',
  permission: 'read',
  tag: 'incidents',
  summary: 'What the newest alert of an incident computes, by the source that evaluates it',
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
    // A source that does not answer is one source less: its health says so.
    const found = told.find((each) => !('notRead' in each)) ?? null
    return { rule: found as z.input<typeof ruleAnswer>['rule'] }
  },
})

const logsEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/logs',
  permission: 'read',
  tag: 'incidents',
  summary: 'The last log lines of the resource of an incident, by the sources that hold logs',
  description:
    'Of each kind of line of the last hour the newest one, eight at most, 1 kB. Code chooses the labels: names of the resource in the registry, and what its newest alert says. A source that gives no answer within four seconds says so with `notRead`.',
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
  summary: 'The log files that the agent of the resource of an incident may read, written last first',
  description:
    'Six at most, of its directories called `log` or `logs` and of those right below the others. Nothing of a log is read. Empty where the resource has no agent of its own.',
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
  summary: 'What the servers of databases around an incident say of themselves now, in lines',
  description:
    'The server that it is about, or those on its machine, then what they replicate from or to; three at most, 1 kB each: who blocks, connections, replication, long transactions, and what changed within the hour. A server that gives no answer says so with `notRead`.',
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
  summary: 'How the resource of an incident is in its cluster now, in lines',
  description:
    'Of a workload, node, namespace, volume claim, service or ingress of Kubernetes, 1.5 kB: conditions, how the containers before ended, the newest rollout and what it changed, the last events folded. A cluster that gives no answer says so with `notRead`.',
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
  summary: 'An incident as an answer: since when, cause, impact, what was done, what is asked, what comes next',
  description:
    'Code folds it from the log; `rows` are the numbers of the rows that a sentence rests on. `asked` is the approval that waits, without the details of its dry run. `similar` are closed incidents of the same type with what repaired them.',
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

/** The newest run, with its page where Temporal has one. */
function workflowOf({ temporalPage }: ApiDeps, { id, attempt }: Incident) {
  if (attempt === 0) return null
  const workflowId = investigationId({ incidentId: id, attempt })
  if (!temporalPage) return { id: workflowId, url: null }
  const path = `/namespaces/${encodeURIComponent(temporalPage.namespace)}/workflows/${encodeURIComponent(workflowId)}`
  return { id: workflowId, url: new URL(path, temporalPage.url).href }
}

/** Why nothing of a person's own write is marked as expected. */
export const nothingFires = 'A person did this: nothing fires that could be expected.'

/** `isOwn`: it is this person's own write. */
function refusal(each: PersonAction, found: Incident, principal: Principal, isOwn: boolean): string | null {
  const permission = permissionOf[each]
  if (!permissionsOf(principal).includes(permission))
    return `Your role (${principal.role}) lacks the permission ${permission}.`
  if (each === 'review' && isOwn) return 'You did it: somebody else has to review it.'
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
      if (found.type === manualChangeType) return 'A person does this: no agent reads it. Add a note.'
      return runningStatuses.includes(status) ? null : `It is ${withSpaces(status)}: no run reads it. Add a note.`
    case 'give_back':
      return owner ? null : 'Nobody has it: there is nothing to give back.'
    case 'take':
      if (owner && owner.id === principal.operatorId) return 'You have it already.'
      return refusedByStatus(each, status)
    case 'review':
      return found.reviewWantedAt === null ? 'It waits for no review.' : null
    case 'investigate':
      if (found.type === manualChangeType) return 'A person did this: there is nothing to investigate.'
      if (found.type === trustLostType) return 'It is about Nightshift itself: no agent takes it.'
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
