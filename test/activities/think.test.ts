import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, describe, expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { type Answered, type AskDeps, askModel } from '../../activities/ask-model.ts'
import { contextActivities } from '../../activities/context.ts'
import { servedModels, waitForSlot, withSlot } from '../../activities/model-server.ts'
import { closeConnections } from '../../clients/http.ts'
import { createModelClient } from '../../clients/model.ts'
import { bodyText, eventsOf, storeBody } from '../../db/events.ts'
import { slotsNow, takeSlot } from '../../db/model-servers.ts'
import { declareResources } from '../../db/registry.ts'
import type { EventMetadata, IncidentEvent } from '../../domain/event.ts'
import { importSource } from '../../domain/registry.ts'
import { readPrompts } from '../../prompts/render.ts'
import { claimedIncident, openedIncident, useDatabase } from '../support/database.ts'
import { type RunningHost, runHost, type Spoken } from '../support/model-hosts/host.ts'
import { vllm } from '../support/model-hosts/local.ts'

describe('ask model', () => {
  const database = useDatabase()
  const silent = { warn() {} }
  let host: RunningHost
  afterEach(async () => await host?.stop())
  afterAll(closeConnections)

  const body = async (text: string) =>
    await database.db.transaction().execute(async (trx) => await storeBody(trx, text))

  /** An attempt that has read twenty pages of logs. */
  async function readingRun(): Promise<{ opening: EventMetadata['context_assembled']; events: IncidentEvent[] }> {
    const opening = {
      ...{ prompt: await body('You investigate.'), tools: await body('[]'), context: await body('{"hint":null}') },
      ...{
        protocol: 'native',
        model: 'qwen3',
        parts: {},
        hintFrom: null,
        maxTurns: 30,
        deadline: '',
        tokenBudget: 1e6,
      },
    } as EventMetadata['context_assembled']
    const events = Array.from({ length: 20 }, (_, index): unknown[] => {
      const callId = `c${index}_0`
      const meta = { ok: true, data: 'line of a log '.repeat(300), meta: {} }
      return [
        {
          ...{ kind: 'model_answered', attempt: 1, seq: index * 2 },
          metadata: { content: '', calls: [{ id: callId, tool: 'read_log', arguments: {}, problem: null }] },
        },
        {
          ...{ kind: 'tool_finished', attempt: 1, seq: index * 2 + 1 },
          metadata: { callId, tool: 'read_log', result: meta, body: null },
        },
      ]
    }).flat() as IncidentEvent[]
    return { opening, events }
  }

  async function asking(speak: () => Spoken, window: number) {
    host = await runHost(vllm({ window, parsesReasoning: true }), speak)
    const where = { baseUrl: host.url, apiKey: '' }
    const served = servedModels(database.db, where, silent)
    const deps: AskDeps = {
      ...{ db: database.db, temperature: 0, maxTokens: 512, contextTokens: 100_000, served },
      model: createModelClient({ ...where, memory: served.memory }),
    }
    const incidentId = await claimedIncident(database.db)
    const { opening, events } = await readingRun()
    const turn = { incidentId, attempt: 1, turn: 21 }
    const { signal } = new AbortController()
    const ask = async () =>
      (await new MockActivityEnvironment().run(() => askModel(deps, turn, events, opening, signal))) as Answered
    return { ask, served }
  }

  test('a window that was set too large is learned from the refusal: the same turn goes on with less of the conversation', async () => {
    const { ask, served } = await asking(() => ({ content: 'ok' }), 8_192)
    expect((await ask()).answer.content).toBe('ok')
    expect(host.asked).toHaveLength(2)
    expect(await served.profile('qwen3')).toMatchObject({ windowTokens: 8_192 })
    // What is left out is said, and the newest results are whole.
    expect(JSON.stringify(host.asked.at(-1))).toContain('cut to fit')
    expect(JSON.stringify(host.asked.at(-1)?.messages.at(-1))).toContain('line of a log')
  })

  test('of a try that lost its slot nothing is used, and it ends at once', async () => {
    const incidentId = await claimedIncident(database.db)
    const run = { incidentId, attempt: 1 }
    const slots = { server: 'http://lost.example/v1', limit: 1, keepEveryMs: 20 }
    const asked = withSlot(database.db, slots, run, async (_waitedMs, lost) => {
      const who = { server: slots.server, holder: `${incidentId}.1`, incidentId, severity: 'warning' as const }
      await takeSlot(database.db, who, 1, 'of the next try')
      await sleep(60_000, undefined, { signal: lost })
    })
    await expect(asked).rejects.toMatchObject({ code: 'MODEL_SLOT_LOST' })
    expect((await slotsNow(database.db)).find(({ server }) => server === slots.server)).toMatchObject({ held: 1 })
  })

  test('a run that is stopped while it waits leaves the line', async () => {
    const slots = { server: 'http://line.example/v1', limit: 1 }
    const [busy, waiting] = [await claimedIncident(database.db), await claimedIncident(database.db)]
    const stop = new AbortController()
    await withSlot(database.db, slots, { incidentId: busy, attempt: 1 }, async () => {
      const environment = new MockActivityEnvironment()
      const beat = new Promise<unknown>((resolve) => environment.once('heartbeat', resolve))
      const waited = environment.run(() =>
        waitForSlot(database.db, slots, { incidentId: waiting, attempt: 1 }, 60_000, stop.signal),
      )
      expect(await beat).toEqual({ waitsFor: 'model', ahead: 1 })
      stop.abort()
      await expect(waited).rejects.toThrow()
      expect(await slotsNow(database.db)).toContainEqual({ server: slots.server, held: 1, waiting: 0 })
    })
  })
})

describe('candidates', () => {
  const database = useDatabase()

  test('an alert whose label means several things gets no resource, and the model gets five of them with the reason', async () => {
    const { db } = database
    const resources = ['1', '2', '3', '4', '5', '6'].map((n) => ({
      ...{ kind: 'node' as const, id: `app-${n}`, aliases: ['app.example.com'] },
    }))
    await db.transaction().execute((trx) => declareResources(trx, importSource, { resources, relations: [] }))
    const incidentId = await openedIncident(db, { labels: { instance: 'app.example.com:9100' } })
    const deps = { db, prompts: readPrompts(), protocol: 'native' as const, model: 'scripted', environment: {} }
    const { claim, assembleContext } = contextActivities(deps)
    await new MockActivityEnvironment({
      workflowExecution: { workflowId: `investigate:${incidentId}:1`, runId: 'r' },
    }).run(async () => {
      await claim({ incidentId, attempt: 1, role: 'leader', groupId: 'grp_test' })
      await assembleContext(incidentId, 1)
    })
    const assembled = (await eventsOf(db, incidentId)).find(({ kind }) => kind === 'context_assembled')
    const digest = assembled?.kind === 'context_assembled' ? assembled.metadata.context.digest : ''
    const { incident, candidates } = JSON.parse(await bodyText(db, digest))
    expect(incident.resource).toBeNull()
    const why = 'label instance says app.example.com, which means 6 things'
    expect(candidates).toEqual(['1', '2', '3', '4', '5'].map((n) => ({ resource: `node:app-${n}`, why })))
  })
})
