import { z } from 'zod'
import { ambiguityOf } from '../db/alerts/alerts.ts'
import { type Db, isTransient } from '../db/connect.ts'
import { nearbyIncidents } from '../db/incidents/nearby.ts'
import { operatorNotes, whyReopened } from '../db/incidents/operator-notes.ts'
import { precedentsOf, wrongCausesOf } from '../db/incidents/precedents.ts'
import { beganAt, changesNear } from '../db/inventory/changes.ts'
import { clusterSourcesOf } from '../db/inventory/cluster-sources.ts'
import { databaseSourcesOf } from '../db/inventory/database-sources.ts'
import { type DeviceRow, deviceOf } from '../db/inventory/devices.ts'
import { neighboursOf, resourceById } from '../db/inventory/resources.ts'
import { listSources } from '../db/inventory/sources.ts'
import { earlierAttempts } from '../db/lifecycle/attempts.ts'
import { systemScope } from '../db/scope.ts'
import { chooseNearest, summarizeChange } from '../domain/change.ts'
import { executable, type LogFile, logFile } from '../domain/device.ts'
import type { Incident } from '../domain/incident.ts'
import { inventoryKind } from '../domain/registry.ts'
import { type RunbookMatch, runbookMatch } from '../domain/runbook.ts'
import { clusterFacts, type DatabaseFacts, databaseFacts, type LastLogs, lastLogs } from '../domain/source.ts'
import type { CorePort } from '../domain/tool.ts'
import { listAllowed } from '../tools/sources.ts'
import { otherAlerts, ownAlerts } from './context-alerts.ts'
import { leaderHint } from './leader-hint.ts'

const maxPrecedents = 5
/**
 * Gathers the incident, its alerts and runbook, the resource and its neighbours, active alerts,
 * precedents and the leader's hint.
 */
export async function gatherContext({ db, core }: { db: Db; core?: CorePort | undefined }, incident: Incident) {
  const { parts, part } = startParts()
  const { resource } = incident
  const alerts = await part('alerts', [], () => ownAlerts(db, incident.id))
  const candidates = resource ? [] : await part('candidates', [], () => candidatesOf(db, incident.id))
  const own = await part('resource', null, async () => (resource ? await resourceById(db, resource) : null))
  const neighbours = await part('neighbours', [], async () => (resource ? await neighboursOf(db, resource) : []))
  const active = await part('activeAlerts', [], async () => await otherAlerts(db, incident))
  const earlier = await part(
    'earlierAttempts',
    [],
    async () => await earlierAttempts(db, incident.id, incident.attempt),
  )
  const told = earlier.map(({ incidentId }) => incidentId)
  const nearby = await part('nearby', [], async () => await nearbyIncidents(db, incident, { neighbours, told }))
  const notes = await part('notes', [], async () => await operatorNotes(db, incident.id))
  const hint = await part('hint', null, async () => await leaderHint(db, incident))
  const hinted = hint && incident.groupId
  const precedents = await part('precedents', [], () => precedentsOf(db, incident, maxPrecedents, hinted))
  const wrong = await part('calledWrong', [], async () => await wrongCausesOf(db, incident, maxPrecedents))
  const changes = await part('changes', [], async () => await changesAround(db, incident))
  const around = await askAround(part, { db, core }, incident)
  const { rule, logs, databases, cluster, jobs, pages, paths, logFiles } = around
  const fitting = jobs?.fitting ?? []
  const words = wordsOf(incident, alerts)
  const runbooks = await part('runbook', null, async () => await runbooksFor(core, incident, words))
  return {
    parts,
    hintFrom: hint?.from ?? null,
    looks: hint?.looks ?? null,
    jobs: jobs?.declared ?? [],
    hasFittingJob: fitting.length > 0,
    runbooks,
    words,
    context: {
      incident: aboutOf(incident),
      alerts,
      // The alert's expression, if a source evaluates it.
      rule,
      // The newest lines of the resource's log, if a source holds the log.
      ...(logs.length > 0 && { logs }),
      // The state of database servers around the resource, as their own sources report it.
      ...(databases.length > 0 && { databases }),
      // The resource's state in its cluster, as the cluster's source reports it.
      ...(cluster.length > 0 && { cluster }),
      // Deployments and changes around the beginning of the incident, on the resource and its
      // dependencies.
      changes,
      resource: own,
      // Paths that the machine's agent may read and write: directories, logs and checkouts of the
      // services.
      ...(paths && { paths }),
      ...(logFiles.length > 0 && { logFiles }),
      // Resources that an ambiguous alert may mean.
      ...(candidates.length > 0 && { candidates }),
      ...(fitting.length > 0 && { jobs: fitting }),
      // Paths that may be read, of each source that limits what may be read.
      ...(pages.length > 0 && { pages }),
      neighbours,
      activeAlerts: active,
      // Earlier attempts at this incident, their verifications, and why they ended.
      earlierAttempts: earlier,
      ...(nearby.length > 0 && { nearby: { note: nearbyNote, incidents: nearby } }),
      notes,
      cameBack: incident.reopened > 0 ? await whyReopened(db, incident.id) : null,
      precedents,
      // Causes that people called wrong for incidents of this type: untrusted text.
      ...(wrong.length > 0 && { calledWrong: wrong }),
      hint: hint?.text ?? null,
    },
  }
}

const aboutOf = ({ id, type, severity, title, resource, status }: Incident) => {
  return { id, type, severity, title, resource, status }
}

/**
 * Queries sources, agents and the operator's lists about the incident's resource, in parallel, so
 * that a source that does not respond delays no other.
 */
async function askAround(part: ReadPart, { db, core }: { db: Db; core?: CorePort | undefined }, incident: Incident) {
  let isSilent = false
  const paths = await part('paths', null, async () => {
    const device = await deviceAt(db, incident.resource)
    isSilent = device !== null && device.healthProblem !== null
    return device && pathsOf(device)
  })
  const [rule, logs, databases, cluster, jobs, pages, logFiles] = await Promise.all([
    part('rule', null, async () => await firingRule(db, core, incident.id)),
    part('logs', [], async () => await lastLogLines(db, core, incident)),
    part('databases', [], async () => await askDatabases(db, core, incident)),
    part('cluster', [], async () => await askCluster(db, core, incident)),
    part('jobs', null, async () => await declaredJobs(core, incident.resource)),
    part('pages', [], async () => listAllowed(await listSources(db))),
    // Skips an agent that did not respond last time, because it would only delay the first turn.
    part('logFiles', [], async () => (paths && !isSilent ? await askLogFiles(core, incident.id) : [])),
  ])
  return { rule, logs, databases, cluster, jobs, pages, paths, logFiles }
}

/** Explains neighbouring incidents to the model. */
const nearbyNote =
  'Incidents near this incident, maybe with the same cause: use their findings and writes instead of repeating them.'

type PartState = 'ok' | 'empty' | 'failed'
type ReadPart = <T>(name: string, empty: T, read: () => Promise<T>) => Promise<T>

/**
 * Returns a function that reads one part of the context and records whether the read worked. An
 * investigation can do without a part, and the row names the missing parts.
 */
function startParts() {
  const parts: Record<string, PartState> = {}
  const part: ReadPart = async (name, empty, read) => {
    // Lists the parts in the order in which their reads began.
    parts[name] = 'empty'
    try {
      const value = await read()
      parts[name] = value === null || (Array.isArray(value) && value.length === 0) ? 'empty' : 'ok'
      return value
    } catch (error) {
      // Throws if the database is unreachable, because then every part would be missing.
      if (isTransient(error)) throw error
      parts[name] = 'failed'
      return empty
    }
  }
  return { parts, part }
}

/** Finds the agent on the resource's machine; null if there is none. */
async function deviceAt(db: Db, resource: Incident['resource']): Promise<DeviceRow | null> {
  const own = resource && executable.safeParse({ kind: resource.kind, id: resource.id }).data
  return (own && (await deviceOf(db, own))) ?? null
}

/** Lists the directories that an agent may write and read. */
function pathsOf({ terms: { roots } }: DeviceRow): Record<string, string[]> {
  const of = (isWritable: boolean) => roots.filter(({ writable }) => writable === isWritable).map(({ path }) => path)
  return { writable: of(true), readable: of(false) }
}

/** Milliseconds in which the core API must answer for a part of the context. */
const partWithinMs = 5_000

const maxCandidates = 5

/** Lists the resources that an ambiguous label may mean. */
async function candidatesOf(db: Db, incidentId: string): Promise<{ resource: string; why: string }[]> {
  const about = await ambiguityOf(db, incidentId)
  if (!about) return []
  const last = about.tried.findLast(({ result }) => result === 'several')
  const why = last
    ? `label ${last.label} is ${last.name}, which names ${about.candidates.length} resources`
    : 'ambiguous'
  return about.candidates.slice(0, maxCandidates).map((resource) => ({ resource, why }))
}

async function firingRule(db: Db, core: CorePort | undefined, incidentId: string): Promise<unknown> {
  if (!core || (await listSources(db)).length === 0) return null
  const answer = await core.get(`/api/v1/incidents/${incidentId}/rule`, { signal: AbortSignal.timeout(partWithinMs) })
  if (!answer.ok) throw new Error(answer.problem.title)
  return (answer.data as { rule: unknown }).rule
}

/**
 * Reads the last lines of the resource's log from each source that has the log, or returns why no
 * lines can be read.
 */
async function lastLogLines(db: Db, core: CorePort | undefined, { id, resource }: Incident): Promise<LastLogs> {
  if (!core || !resource || (await listSources(db)).length === 0) return []
  const answer = await core.get(`/api/v1/incidents/${id}/logs`, { signal: AbortSignal.timeout(partWithinMs) })
  if (!answer.ok) throw new Error(answer.problem.title)
  return lastLogs.parse((answer.data as { items: unknown }).items)
}

/** Lists the log files of the resource's machine, the last written first. */
async function askLogFiles(core: CorePort | undefined, id: string): Promise<LogFile[]> {
  if (!core) return []
  const signal = AbortSignal.timeout(partWithinMs)
  const answer = await core.get(`/api/v1/incidents/${id}/log-files`, { signal })
  if (!answer.ok) throw new Error(answer.problem.title)
  return z.array(logFile).parse((answer.data as { items: unknown }).items)
}

/** Reads the state of the database servers around the resource, or why no state can be read. */
async function askDatabases(db: Db, core: CorePort | undefined, { id, resource }: Incident): Promise<DatabaseFacts> {
  if (!core || !resource || (await databaseSourcesOf(db, resource)).length === 0) return []
  const answer = await core.get(`/api/v1/incidents/${id}/databases`, { signal: AbortSignal.timeout(partWithinMs) })
  if (!answer.ok) throw new Error(answer.problem.title)
  return databaseFacts.parse((answer.data as { items: unknown }).items)
}

/** Reads what the resource's cluster reports, or why the cluster reports nothing. */
async function askCluster(db: Db, core: CorePort | undefined, { id, resource }: Incident): Promise<DatabaseFacts> {
  if (!core || !resource || (await clusterSourcesOf(db, resource)).length === 0) return []
  const answer = await core.get(`/api/v1/incidents/${id}/cluster`, { signal: AbortSignal.timeout(partWithinMs) })
  if (!answer.ok) throw new Error(answer.problem.title)
  return clusterFacts.parse((answer.data as { items: unknown }).items)
}

/** Lists the names of declared jobs, and the jobs for this resource; null if no job is declared. */
async function declaredJobs(core: CorePort | undefined, resource: Incident['resource']) {
  if (!core) return null
  const ask = async (query: string): Promise<{ name: string; about: string }[]> => {
    const answer = await core.get(`/api/v1/jobs${query}`, { signal: AbortSignal.timeout(partWithinMs) })
    if (!answer.ok) throw new Error(answer.problem.title)
    return (answer.data as { items: { name: string; about: string }[] }).items
  }
  const declared = (await ask('')).map(({ name }) => name)
  if (declared.length === 0) return null
  const fitting = resource ? await ask(`?kind=${resource.kind}&id=${encodeURIComponent(resource.id)}`) : []
  return { declared, fitting: fitting.map(({ name, about }) => ({ name, about })) }
}

/** Finds the runbook that fits the incident, and the names of two more. Null if none fits. */
async function runbooksFor(
  core: CorePort | undefined,
  { type, resource }: Incident,
  words: string,
): Promise<RunbookMatch | null> {
  if (!core) return null
  const query = new URLSearchParams({ type })
  const kind = inventoryKind.safeParse(resource?.kind).data
  if (kind) query.set('kind', kind)
  query.set('words', words)
  const signal = AbortSignal.timeout(partWithinMs)
  const answer = await core.get(`/api/v1/knowledge-match?${query}`, { signal })
  if (!answer.ok) throw new Error(answer.problem.title)
  const match = runbookMatch.parse(answer.data)
  return match.chosen === null && match.others.length === 0 ? null : match
}

/** Most characters of alerts' texts that the search for a runbook uses. */
const maxWords = 1_000

/** Joins the texts of the incident and its alerts. */
function wordsOf(
  { title }: Incident,
  alerts: readonly { name: string; annotations: Record<string, string> }[],
): string {
  const said = alerts.flatMap(({ name, annotations }) => [name, annotations.summary, annotations.description])
  return [title, ...said].filter(Boolean).join(' ').slice(0, maxWords).toWellFormed()
}

const beforeMs = 3_600_000
/** Most changes that are read from after the incident's beginning. */
const maxAfter = 200
const maxBefore = 5

/**
 * Lists changes from an hour before an incident's beginning, on its resource and dependencies: at
 * most five. The last changes before the beginning come first.
 */
export async function changesAround(
  db: Db,
  { id, resource }: Pick<Incident, 'id' | 'resource'>,
): Promise<Record<string, unknown>[]> {
  const began = resource ? await beganAt(db, id) : null
  if (!resource || began === null) return []
  const fromIso = new Date(Date.parse(began) - beforeMs).toISOString()
  const before = await changesNear(systemScope(db), resource, { fromIso, untilIso: began, limit: maxBefore })
  const after = await changesNear(systemScope(db), resource, { fromIso: began, limit: maxAfter })
  const each = new Map([...before.changes, ...after.changes].map((change) => [change.id, change]))
  return chooseNearest([...each.values()], began).map((change) =>
    summarizeChange(change, { iso: began, isBegin: true }),
  )
}
