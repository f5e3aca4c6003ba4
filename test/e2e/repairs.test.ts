import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { IncidentEvent } from '../../domain/event.ts'
import { type ChatRequest, type Line, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'

/**
 * A critical alert on a shard that is read as nominal, and a model that converges it and calls that
 * a repair.
 */
let model: ScriptedModel
let spine: Spine
let lines: ((request: ChatRequest) => Line)[] = []

const shard = 'web-ams-1'
const settleSeconds = 5

beforeAll(async () => {
  model = await scriptedModel((_turn, request) => (lines.length > 1 ? lines.shift() : lines[0])?.(request) ?? '')
  spine = await startSpine({
    parts: ['lab', 'api', 'worker'],
    environment: {
      LLM_BASE_URL: model.url,
      LLM_MODEL: 'scripted',
      WATCHDOG_INTERVAL_SECONDS: '0.5',
      // The lab's own alerts go nowhere: what fires here is raised by the test.
      ALERT_URL: 'http://127.0.0.1:9/',
    },
  })
})
afterAll(async () => {
  await spine?.stop()
  await model?.stop()
})
beforeEach(async () => {
  await sql`delete from platform_config`.execute(spine.owner)
  await sql`insert into platform_config (key, value) values ('alert.settle', ${String(settleSeconds)})`.execute(
    spine.owner,
  )
})

const idOf = (request: ChatRequest) => /inc_[0-9a-z]{26}/.exec(JSON.stringify(request.messages))?.[0] ?? ''
const seqOf = (request: ChatRequest) => Number(/"seq":(\d+)/.exec(request.messages.at(-1)?.content ?? '')?.[1])
const look = () => [{ tool: 'get_shard', arguments: { id: shard } }]
const converge = () => [{ tool: 'converge_shard', arguments: { id: shard, reason: 'The shard may be broken.' } }]
const repaired = (request: ChatRequest) => [
  {
    tool: 'resolve_incident',
    arguments: {
      id: idOf(request),
      resolution: `${shard} is nominal.`,
      outcome: 'repaired',
      claims: [
        { kind: 'is', text: `${shard} is nominal`, quotes: [{ seq: seqOf(request), text: '"status":"nominal"' }] },
      ],
    },
  },
]
const handOver = (request: ChatRequest) => [
  {
    tool: 'escalate_incident',
    arguments: { id: idOf(request), reason: 'The shard is nominal and its alert fires.', category: 'alert_goes_on' },
  },
]

async function fires(name: string): Promise<void> {
  const labels = { alertname: name, severity: 'critical', shard }
  const alerts = [{ status: 'firing', labels, annotations: { summary: `${name} on ${shard}` } }]
  await spine.post('/ingest/alertmanager', { version: '4', status: 'firing', alerts }, { token: spine.tokens.ingest })
}

const codes = (events: IncidentEvent[]) =>
  events.flatMap((event) => (event.kind === 'call_judged' ? [event.metadata.code] : []))
const changed = (events: IncidentEvent[]) =>
  events.flatMap((event) =>
    event.kind === 'tool_finished' && event.metadata.effect === 'write' ? [event.metadata.changed] : [],
  )
const pages = async (id: string) =>
  await sql<{ trigger: string }>`select notification->>'trigger' as trigger from delivery where incident_id = ${id}`
    .execute(spine.db)
    .then(({ rows }) => rows.map(({ trigger }) => trigger))

test('a convergence without changes is no repair of a critical alert, and people get the incident', async () => {
  lines = [look, converge, look, repaired, handOver]
  await fires('nothing_changes')
  const incident = await spine.incident('nothing_changes', 'resolved|escalated')
  const events = await spine.events(incident.id)
  expect(changed(events)).toEqual([[]])
  expect(codes(events)).toEqual(['READ', 'REVERSIBLE_NEAR', 'READ', 'NOTHING_CHANGED', 'TERMINAL'])
  expect(incident).toMatchObject({ status: 'escalated', category: 'alert_goes_on', alerts: { firing: 1 } })
  const finished = events.find((event) => event.kind === 'tool_finished' && event.metadata.effect === 'write')
  expect(finished?.kind === 'tool_finished' && finished.metadata.said).toContain('nothing to change')
})

test('a convergence with changes is a watched repair, and a critical alert that keeps firing goes to people at once', async () => {
  await spine.lab.break('config_drift', shard)
  lines = [look, converge, look, repaired]
  await sql`insert into platform_config (key, value) values ('webhook.escalated.url', 'http://127.0.0.1:9/escalated')`.execute(
    spine.owner,
  )
  await fires('fires_on')
  const resolved = await spine.incident('fires_on', 'resolved')
  expect(resolved).toMatchObject({ outcome: 'repaired', alerts: { firing: 1 }, watchUntil: expect.any(String) })
  expect(changed(await spine.events(resolved.id))).toEqual([[expect.stringContaining('configuration restored')]])

  const incident = await spine.incident('fires_on', 'escalated')
  expect(incident).toMatchObject({ id: resolved.id, category: 'alert_goes_on', closedBy: 'code' })
  expect(incident.resolution).toContain('The write was verified, but the alert still fires')
  const settled = Date.parse(incident.closedAt ?? '') - Date.parse(resolved.closedAt ?? '')
  expect(settled).toBeGreaterThanOrEqual(settleSeconds * 1000)
  expect(await pages(incident.id)).toContain('escalated')
})
