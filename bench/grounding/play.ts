import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { MockActivityEnvironment } from '@temporalio/testing'
import pino from 'pino'
import { z } from 'zod'
import { actActivities } from '../../activities/act.ts'
import { contextActivities } from '../../activities/context.ts'
import { servedModels } from '../../activities/served-models.ts'
import { thinkActivities } from '../../activities/think.ts'
import { createCoreClient } from '../../clients/core.ts'
import { createModelClient } from '../../clients/model.ts'
import { ensureFirstRunTokens } from '../../db/access/tokens.ts'
import { connect, type Db } from '../../db/connect.ts'
import { openByHand } from '../../db/incidents/person-requests.ts'
import { putSource } from '../../db/inventory/sources.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { Claim } from '../../domain/claim.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { type ClaimGrade, claimGrades } from '../../domain/hypothesis.ts'
import { investigationId } from '../../domain/step-key.ts'
import { migrateToLatest } from '../../migrations/migrate.ts'
import { readPrompts } from '../../prompts/render.ts'
import { foldText } from '../../safety/claims/quote.ts'
import { startPostgres } from '../../start/postgres.ts'
import { temporaryDirectory } from '../../test/support/directory.ts'
import { type ChatRequest, type Line, type Said, scriptedModel } from '../../test/support/scripted-model.ts'
import { type LoopPorts, runLoop } from '../../workflows/loop.ts'
import { startApi } from '../stage.ts'
import type { CaseReading } from './cases.ts'

/**
 * Plays scripted investigations through the real loop, activities, judge and claim check, with
 * PostgreSQL and a core API process but without Temporal. A test server returns the recorded
 * readings as pages (`http_read`). The model is scripted.
 */

export type PlayedResult = { seq: number; text: string; digest: string | null }

/**
 * The script of the model. The model reads `readings` in order, searches for `lookFor`, and then
 * tries `endings`.
 */
export type ModelScript = {
  readings: readonly CaseReading[]
  /**
   * Words to search for in a whole reading, if the summary of the reading lacks them. `at` is the
   * position of the reading in `readings`.
   */
  lookFor: readonly { at: number; words: string; line: string }[]
  /** Endings to try one after another, until one is recorded. */
  endings: readonly ((results: readonly PlayedResult[]) => Claim)[]
}

/**
 * The outcome of an ending: the grade of its claim, and the reason if the grade is not the best.
 * `refused`: the ending was not recorded, and `why` is the judge's reason.
 */
export type GroundingOutcome = { ending: ClaimGrade | 'refused'; why: string | null }

/**
 * Runs scripts. `play` returns an outcome for each ending that was tried. The first ending that is
 * recorded is the last that is tried.
 */
export type Player = { play(script: ModelScript): Promise<GroundingOutcome[]>; stop(): Promise<void> }

export async function startPlayer(): Promise<Player> {
  const directory = temporaryDirectory()
  const postgres = await startPostgres({ dir: join(directory.path, 'postgres'), durable: false })
  await migrateToLatest(postgres.url)
  const db = connect(postgres.url, { max: 8 })
  const { agent } = await ensureFirstRunTokens(db)
  const api = await startApi({ databaseUrl: postgres.url, dir: directory.path })
  const pages = new Map<string, CaseReading>()
  const server = await servePages(pages)
  const { port } = server.address() as AddressInfo
  const source = {
    kind: 'http',
    url: `http://127.0.0.1:${port}`,
    credential: null,
    writeCredential: null,
    caFile: null,
    scheme: null,
    headers: {},
    certFile: null,
    keyFile: null,
    timeoutSeconds: 10,
  }
  await putSource(db, 'cluster', { ...source, options: { paths: ['/**'] } }, 'bench')
  const scripts = new Map<string, ModelScript>()
  const model = await scriptedModel((_turn, request) => say(request, scripts))
  const activities = activitiesOf(db, { agent, core: api.url, model: model.url })
  let runs = 0
  return {
    async play(script) {
      runs += 1
      const prefix = `/run-${runs}`
      const given = script.readings.map((reading, at) => ({ ...reading, path: `${prefix}/${at}/${reading.path}` }))
      for (const reading of given) pages.set(reading.path, reading)
      const incidentId = await openQuestion(db)
      scripts.set(incidentId, { ...script, readings: given })
      try {
        await runInvestigation(activities, incidentId)
        return outcomesOf(await eventsOf(db, incidentId))
      } finally {
        scripts.delete(incidentId)
        for (const { path } of given) pages.delete(path)
      }
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await model.stop()
      await api.stop()
      await db.destroy()
      await postgres.stop()
      directory.remove()
    },
  }
}

async function servePages(pages: ReadonlyMap<string, CaseReading>): Promise<Server> {
  const server = createServer((request, response) => {
    const page = pages.get(request.url ?? '')
    response.statusCode = page ? 200 : 404
    response.setHeader('content-type', page?.isJson ? 'application/json' : 'text/plain; charset=utf-8')
    response.end(page?.body ?? 'no such page')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

type Activities = ReturnType<typeof activitiesOf>

function activitiesOf(db: Db, at: { agent: string; core: string; model: string }) {
  const core = createCoreClient({ baseUrl: at.core, apiKey: at.agent })
  const environment = { LLM_MAX_TURNS: '20' }
  const served = servedModels(db, { baseUrl: at.model, apiKey: '' }, pino({ level: 'silent' }))
  const client = createModelClient({ baseUrl: at.model, apiKey: '', memory: served.memory })
  const routed = { name: 'scripted', model: 'scripted', fallbacks: [], client, served }
  return {
    ...contextActivities({ db, core, prompts: readPrompts(), protocol: 'native', model: 'scripted', environment }),
    ...actActivities({ db, core, environment }),
    ...thinkActivities({ db, models: [routed], temperature: 0, maxTokens: 1_000, contextTokens: 200_000 }),
  }
}

async function openQuestion(db: Db): Promise<string> {
  const question = 'What is the cause of this disruption of a service?'
  const opened = await db.transaction().execute((trx) =>
    openByHand(trx, { type: 'question', severity: 'info', title: question, resource: null }, question, {
      actor: 'user:bench',
      operatorId: null,
    }),
  )
  return opened.id
}

/**
 * Runs the steps of `workflows/investigate.ts` without Temporal: claim, context, loop, hand-over.
 */
async function runInvestigation(activities: Activities, incidentId: string): Promise<void> {
  const run = { incidentId, attempt: 1 }
  const workflowExecution = { workflowId: investigationId(run), runId: `run-${incidentId}` }
  const inRun = async <T>(work: () => Promise<T>): Promise<T> =>
    (await new MockActivityEnvironment({ workflowExecution }).run(work)) as T
  await inRun(() => activities.claim({ ...run, role: 'leader', groupId: 'grp_bench' }))
  const limits = await inRun(() => activities.assembleContext(incidentId, 1))
  const ports: LoopPorts = {
    think: (turn) => inRun(() => activities.think({ ...run, turn })),
    act: (turn, call, _tool, approvalId) => inRun(() => activities.act({ ...run, turn, call, approvalId })),
    verify: (turn, call) => inRun(() => activities.verify({ ...run, turn, call })),
    waitForModel: async () => {},
    waitForDecision: async () => 'interrupted',
    pause: async () => 'over',
    interrupted: async () => false,
    isStillWanted: async () => true,
    checkpoint: async () => {},
    now: () => Date.now(),
  }
  const end = await runLoop(ports, { ...limits, correctionsAreFree: true })
  if (end.end === 'escalate') await inRun(() => activities.escalate(incidentId, 1, end.code, end.turn))
}

const maxCalls = 8

/**
 * Returns the next response of the script: first the remaining readings, then searches, then
 * endings, then a hand-over without claims.
 */
function say({ messages }: ChatRequest, scripts: ReadonlyMap<string, ModelScript>): Line {
  const id = /inc_[0-9a-z]{26}/.exec(JSON.stringify(messages.slice(0, 4)))?.[0] ?? ''
  const script = scripts.get(id)
  if (!script) return 'no script'
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => toResult(content ?? ''))
  const reads = results.slice(0, script.readings.length)
  if (reads.length < script.readings.length) {
    const left = script.readings.slice(reads.length, reads.length + maxCalls)
    return left.map(({ path }): Said => ({ tool: 'http_read', arguments: { path } }))
  }
  const searches = script.lookFor.flatMap(({ at, words, line }): Said[] => {
    const read = reads[at]
    if (!read?.digest || foldText(read.text).includes(foldText(words))) return []
    return [{ tool: 'read_result', arguments: { incident_id: id, digest: read.digest, match: line, limit: 5 } }]
  })
  const done = results.length - reads.length
  if (done < searches.length) return searches.slice(done)
  const claim = script.endings[done - searches.length]?.(results)
  if (claim) {
    const args = { id, resolution: claim.text, outcome: 'answered', claims: [claim] }
    return [{ tool: 'resolve_incident', arguments: args }]
  }
  const reason = 'A person has to look at it.'
  return [{ tool: 'escalate_incident', arguments: { id, reason, category: 'no_tool', next_step: 'Look at it.' } }]
}

function toResult(text: string): PlayedResult {
  const seq = Number(/"seq":(\d+)/.exec(text.slice(text.lastIndexOf('"meta"')))?.[1] ?? 0)
  return { seq, text, digest: /"digest":"([0-9a-f]{12,64})"/.exec(text)?.[1] ?? null }
}

const graded = z.looseObject({
  claims: z.array(z.looseObject({ grade: z.enum(claimGrades), why: z.string().optional() })).default([]),
})

function outcomesOf(events: readonly IncidentEvent[]): GroundingOutcome[] {
  const ruled = events.flatMap((event) =>
    event.kind === 'call_judged' && event.metadata.tool === 'resolve_incident' ? [event.metadata] : [],
  )
  return ruled.map(({ verdict, code, reason, details }) => {
    if (verdict !== 'run') return { ending: 'refused', why: `${code}: ${reason}` }
    const [claim] = graded.parse(details).claims
    return { ending: claim?.grade ?? 'C', why: claim?.why ?? null }
  })
}
