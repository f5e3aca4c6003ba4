import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from '@jest/globals'
import { createApiClient } from '../../cli/api.ts'
import { streamEvents } from '../../cli/stream.ts'
import type { LiveAnswer } from '../../domain/chat.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { describeLiveAnswer } from '../../domain/format.ts'
import type { ModelList } from '../../domain/model-list.ts'
import { temporaryDirectory } from '../support/directory.ts'
import {
  type Answered,
  type Asked,
  type ModelHost,
  openAi,
  type RunningHost,
  runHost,
  type Spoken,
} from '../support/model-hosts/host.ts'
import { ollama, vllm } from '../support/model-hosts/local.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine
let host: RunningHost
let standIn: RunningHost | null = null
afterEach(async () => {
  await spine?.stop()
  await host?.stop()
  await standIn?.stop()
  standIn = null
})

type Speak = (asked: Asked, turn: number) => Spoken | Answered | Promise<Spoken>
type Model = { state: 'asked' | 'waiting'; ahead: number } | null
type Status = {
  model: { asking: number; waiting: number; windowTokens: number; windowSource: string; learned: string[] }
}

async function site(played: ModelHost, model: string, speak: Speak, environment: Record<string, string> = {}) {
  host = await runHost(played, speak)
  spine = await startSpine({
    parts: ['api', 'worker'],
    environment: {
      LLM_BASE_URL: host.url,
      LLM_MODEL: model,
      LLM_API_KEY: 'sk-test',
      AGENT_MAX_CONCURRENT: '5',
      ...environment,
    },
  })
}

async function alerted(type: string): Promise<void> {
  const at = new Date().toISOString()
  const alert = { status: 'firing', labels: { alertname: type, severity: 'warning' }, annotations: {}, startsAt: at }
  const body = { version: '4', groupKey: type, status: 'firing', receiver: 'x', alerts: [alert] }
  expect((await spine.post('/ingest/alertmanager', body, { token: spine.tokens.ingest })).status).toBe(202)
}

async function ended(type: string): Promise<IncidentEvent[]> {
  return await spine.events((await spine.incident(type, 'resolved|escalated')).id)
}

const calls = (name: string, given: Record<string, unknown>): Spoken => ({ calls: [{ name, arguments: given }] })
const idIn = (asked: Asked) => /inc_[0-9a-z]+/.exec(JSON.stringify(asked.messages))?.[0] ?? ''
const lookThenHandOver: Speak = (asked) =>
  asked.messages.some(({ role }) => role === 'tool')
    ? calls('escalate_incident', { id: idIn(asked), reason: 'I looked and found nothing by that name.' })
    : calls('find_resource', { text: 'osl' })
/** The end is the model's own, and no answer was lost on the way. */
function handedOver(events: IncidentEvent[]): void {
  expect(events.filter(({ kind }) => kind === 'model_failed')).toEqual([])
  const end = events.find((event) => event.kind === 'tool_finished' && event.metadata.effect === 'terminal')
  expect(end).toMatchObject({ metadata: { outcome: 'done' } })
}

test('models of OpenAI investigate, and a restarted worker sends the right request at once', async () => {
  await site(openAi, 'gpt-5-mini', (asked, turn) => ({
    ...(lookThenHandOver(asked, turn) as Spoken),
    reasoning: 'hm',
  }))
  await alerted('first_of_them')
  const events = await ended('first_of_them')
  handedOver(events)
  const answer = events.find((event) => event.kind === 'model_answered')
  expect(answer).toMatchObject({ metadata: { usage: { reasoningTokens: 256 } } })
  expect(host.asked).toHaveLength(4)

  await spine.kill('worker')
  await spine.start('worker')
  await alerted('second_of_them')
  handedOver(await ended('second_of_them'))
  expect(host.asked).toHaveLength(6)
  const { model } = await spine.get<Status>('/status')
  expect(model.learned).toEqual(['max_completion_tokens instead of max_tokens', 'no temperature'])
})

test('as many runs ask the model as allowed, over all workers, and the others show that they wait, and lose nothing', async () => {
  let now = 0
  let most = 0
  const gate = Promise.withResolvers<void>()
  const thought = 'SECRET PLANS with a draft {"tool_call":'
  await site(
    vllm({ window: 16_384 }),
    'qwen3',
    async (asked, turn) => {
      now += 1
      most = Math.max(most, now)
      await gate.promise
      now -= 1
      return { ...(await lookThenHandOver(asked, turn)), content: '', reasoning: thought }
    },
    { LLM_MAX_CONCURRENT: '1' },
  )
  await spine.start('worker2')
  const types = ['alpha_busy', 'beta_busy', 'gamma_busy']
  for (const type of types) await alerted(type)
  const ids = await Promise.all(types.map(async (type) => (await spine.incident(type, 'investigating')).id))
  const models = async () =>
    (await Promise.all(ids.map(async (id) => (await spine.get<{ model: Model }>(`/incidents/${id}`)).model))).flatMap(
      (model) => model ?? [],
    )
  const line = await spine.until('one that asks and two that wait', async () => {
    const found = await models()
    return found.length === 3 && found.toSorted((a, b) => a.ahead - b.ahead || (a.state < b.state ? -1 : 1))
  })
  expect(line.map(({ state, ahead }) => `${state} ${ahead}`)).toEqual(['asked 0', 'waiting 0', 'waiting 1'])
  const { model } = await spine.get<Status>('/status')
  expect(model).toMatchObject({
    asking: 1,
    waiting: 2,
    windowTokens: 16_384,
    windowSource: 'max_model_len of /v1/models',
  })
  const metrics = await (await fetch(`${spine.url}/metrics`)).text()
  expect(metrics).toContain('nightshift_model_slots{state="waiting"} 2')

  gate.resolve()
  for (const type of types) {
    const events = await ended(type)
    handedOver(events)
    expect(JSON.stringify(events)).not.toContain('SECRET PLANS')
    expect(events.filter(({ kind }) => kind === 'model_answered')).toHaveLength(2)
  }
  expect(most).toBe(1)
  expect(host.asked).toHaveLength(6)
  // No later turn was told what an earlier one thought.
  expect(JSON.stringify(host.asked)).not.toContain('SECRET PLANS')
})

test('while a server is down a fallback is asked: the run shows it, a watcher sees its text, and its key is nowhere', async () => {
  const key = 'sk-of-the-stand-in-0123456789'
  const directory = temporaryDirectory()
  const [keyFile, file] = [join(directory.path, 'key'), join(directory.path, 'models.json')]
  const small = { ...openAi, pauseMs: 120 }
  const seen: string[] = []
  standIn = await runHost(small, async (asked, turn) => {
    await sleep(300)
    return {
      ...((await lookThenHandOver(asked, turn)) as Spoken),
      content: 'I look what there is and then hand over.',
    }
  })
  writeFileSync(keyFile, key)
  const models = [{ name: 'small', baseUrl: standIn.url, model: 'gpt-5-mini', keyFile }]
  writeFileSync(file, JSON.stringify({ default: { fallbacks: ['small'] }, models }))
  const down: Answered = { status: 503, body: { error: { message: 'no capacity' } } }
  await site(vllm({ window: 32_768 }), 'qwen3', () => down, { LLM_SERVERS_FILE: file })
  await alerted('all_is_down')
  const { id } = await spine.incident('all_is_down', 'investigating')
  const ends = new AbortController()
  const client = createApiClient({ url: spine.url, token: spine.tokens.admin, run: null })
  const watching = (async () => {
    const onLive = (live: LiveAnswer) => void seen.push(`${describeLiveAnswer(live)} | ${live.tail}`)
    for await (const _ of streamEvents(client, { incidentId: id, signal: ends.signal, onLive }));
  })()
  const events = await ended('all_is_down')
  ends.abort()
  await watching
  const note = events.find((event) => event.kind === 'noted' && event.metadata.code === 'model_route')
  expect(note?.detail).toMatch(/^Fell back from default \(qwen3\) to small \(gpt-5-mini\): /)
  const answer = events.find((event) => event.kind === 'model_answered')
  expect(answer).toMatchObject({ metadata: { route: 'small', server: `${standIn.url}/v1` } })
  expect(seen.join('\n')).toMatch(/^gpt-5-mini answers · \d s · about [1-9]\d* tokens · turn 1 of 10 \| I look what/m)
  const list = await spine.get<ModelList>('/models')
  expect(list.items.map(({ name, awayUntil }) => [name, awayUntil !== null])).toEqual([
    ['default', true],
    ['small', false],
  ])
  const everything = `${JSON.stringify([events, list, await spine.get('/status')])}${spine.printed()}`
  expect(everything).not.toContain(key)
  expect(standIn.asked.length).toBeGreaterThan(1)
  directory.remove()
})

test('an Ollama whose window would cut off the prompt is not asked, and the person who gets the incident reads which setting to change', async () => {
  // Not even a setting that says otherwise has the prompt cut off.
  await site(ollama({ environment: 2048 }), 'qwen3:8b', () => ({ content: 'All is well.' }), {
    LLM_CONTEXT_TOKENS: '32768',
  })
  await alerted('too_small')
  const events = await ended('too_small')
  expect(events.find(({ kind }) => kind === 'model_failed')).toMatchObject({
    detail: expect.stringContaining('a window of 2048 (context_length of /api/ps)'),
    metadata: { code: 'context_too_long' },
  })
  const end = events.find((event) => event.kind === 'escalated')
  expect(end).toMatchObject({ metadata: { reason: expect.stringContaining('OLLAMA_CONTEXT_LENGTH') } })
  expect(host.asked).toEqual([])
})
