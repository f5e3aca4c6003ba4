import { expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { sql } from 'kysely'
import { contextActivities } from '../../../activities/context.ts'
import { changesAround } from '../../../activities/gather-context.ts'
import { incidentById } from '../../../db/incidents/incidents.ts'
import { changesNear, dropOldChanges } from '../../../db/inventory/changes.ts'
import { declareResources } from '../../../db/inventory/registry.ts'
import { bodyText } from '../../../db/log/bodies.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { systemScope } from '../../../db/scope.ts'
import { importSource, type SourceDeclaration } from '../../../domain/declared-resources.ts'
import { readPrompts } from '../../../prompts/render.ts'
import { tools } from '../../../tools/registry.ts'
import { corePort, useApi } from '../../support/api.ts'
import { openedIncident } from '../../support/database.ts'
import { github, gitlab, signed } from '../../support/deliveries.ts'

const api = useApi()

const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString()
const declare = (resources: SourceDeclaration['resources'], relations: SourceDeclaration['relations'] = []) =>
  api.db.transaction().execute((trx) => declareResources(trx, importSource, { resources, relations }))
const site = () =>
  declare(
    [
      { kind: 'node', id: 'web-1', aliases: ['10.0.0.1'] },
      { kind: 'vm', id: '101' },
      { kind: 'host', id: 'pve-1' },
      { kind: 'service_unit', id: 'web-1.nginx', aliases: ['nginx.service'] },
      { kind: 'workload', id: 'shop' },
      { kind: 'workload', id: 'billing' },
      { kind: 'node', id: 'db-1' },
    ],
    [
      { from: { kind: 'node', id: 'web-1' }, kind: 'same_as', to: { kind: 'vm', id: '101' } },
      { from: { kind: 'vm', id: '101' }, kind: 'runs_on', to: { kind: 'host', id: 'pve-1' } },
      { from: { kind: 'service_unit', id: 'web-1.nginx' }, kind: 'runs_on', to: { kind: 'node', id: 'web-1' } },
      { from: { kind: 'service_unit', id: 'web-1.nginx' }, kind: 'depends_on', to: { kind: 'workload', id: 'shop' } },
    ],
  )
async function set(key: string, value: string): Promise<void> {
  await sql`insert into platform_config (key, value) values (${key}, ${value})
    on conflict (key) do update set value = excluded.value`.execute(api.db)
}
const unset = async (key: string): Promise<void> => {
  await sql`delete from platform_config where key = ${key}`.execute(api.owner)
}

type Entry = { id: string; outcome: string; resource: string | null; why: string }
async function post(body: unknown, headers: Record<string, string> = {}, as: string = api.tokens.ingest) {
  const raw = typeof body === 'string' ? body : JSON.stringify(body)
  const answer = await api.post('/ingest/change', { raw, as, headers })
  return { ...answer, changes: (answer.body.changes ?? []) as unknown as Entry[] }
}
const titlesNear = async (kind: 'node' | 'service_unit' | 'workload', id: string) =>
  (await changesNear(systemScope(api.db), { kind, id }, { fromIso: minutesAgo(60), limit: 50 })).changes.map(
    ({ title }) => title,
  )

test('a change that names resources is stored for each of them, under the common name', async () => {
  await site()
  const { status, changes } = await post({
    title: 'kernel 6.12',
    at: minutesAgo(5),
    resources: ['web-1', 'db-1', 'web-9'],
  })
  expect(status).toBe(202)
  expect(changes.map(({ outcome, resource, why }) => [outcome, resource, why])).toEqual([
    ['stored', 'vm:101', 'it names web-1'],
    ['stored', 'node:db-1', 'it names db-1'],
    ['stored', null, 'web-9 is not known'],
  ])
})

test('the labels of a change find a resource like the labels of an alert', async () => {
  await site()
  const { changes } = await post({ title: 'conf', at: minutesAgo(4), labels: { instance: '10.0.0.1:9100' } })
  expect(changes).toMatchObject([{ resource: 'vm:101', why: 'label instance names node:web-1' }])
})

test('a change that finds no resource is stored, says so in its answer, and is listed as such', async () => {
  const { changes } = await post({ title: 'a lonely change', at: minutesAgo(4) })
  expect(changes).toMatchObject([{ outcome: 'stored', resource: null, why: 'no label names a resource' }])
  const unmatched = await api.get('/changes?unmatched=true&q=lonely', { as: api.tokens.viewer })
  expect(unmatched.body.items).toMatchObject([{ id: changes[0]?.id, resource: null }])
})

test("a repository is assigned to resources by the site's rules, each rule that fits, and an environment can decide", async () => {
  await site()
  await set(
    'change.resource_labels',
    'deployment=acme/*@production -> workload:*; repository=acme/shop -> node:db-1; repository=acme/api -> node:none',
  )
  const send = (environment: string, id: number) =>
    post(github.deployment({ at: minutesAgo(3), environment, id }), { 'x-github-event': 'deployment_status' })
  expect((await send('production', 1)).changes.map(({ resource }) => resource)).toEqual(['workload:shop', 'node:db-1'])
  expect((await send('staging', 2)).changes.map(({ resource }) => resource)).toEqual(['node:db-1'])
  await unset('change.resource_labels')
})

test('the same delivery is stored once, however often and however parallel it arrives', async () => {
  const body = github.push({ pushedAt: Math.floor(Date.now() / 1000) - 60, message: 'once' })
  const again = () => post(body, { 'x-github-event': 'push', 'x-github-delivery': String(Math.random()) })
  const all = await Promise.all(Array.from({ length: 8 }, again))
  const outcomes = all.flatMap(({ changes }) => changes.map(({ outcome }) => outcome)).sort()
  expect(outcomes).toEqual([...Array(7).fill('repeated'), 'stored'])
  expect(new Set(all.map(({ changes }) => changes[0]?.id)).size).toBe(1)
  const twice = { title: 'twice', at: minutesAgo(1) }
  expect((await post([twice, twice])).changes.map(({ outcome }) => outcome).sort()).toEqual(['repeated', 'stored'])
})

test('a label that is nested too deeply counts as unreadable', async () => {
  const nested = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  const body = `{"title":"deep","at":"${minutesAgo(1)}","labels":{"a":${nested}}}`
  expect((await post(body)).changes).toMatchObject([{ outcome: 'stored' }])
  expect((await post(body)).changes).toMatchObject([{ outcome: 'repeated' }])
})

test('without a secret the senders need a token that may ingest', async () => {
  const body = JSON.stringify(gitlab.deployment({ at: minutesAgo(1) }))
  const headers = { 'x-gitlab-event': 'Deployment Hook', 'x-gitlab-token': 'whatever' }
  expect((await post(body, headers, '')).status).toBe(401)
  expect((await post(body, headers, api.tokens.viewer)).status).toBe(403)
  expect((await post(body, headers, api.tokens.agent)).status).toBe(403)
  expect((await post(body, headers)).status).toBe(202)
})

test('with a secret each delivery needs its proof, and an API token is not enough', async () => {
  await set('change.github_secret', 'a-secret-of-github')
  await set('change.gitlab_token', 'a-token-of-gitlab-1')
  const body = JSON.stringify(github.deployment({ at: minutesAgo(1), id: 77 }))
  const event = { 'x-github-event': 'deployment_status' }
  const sign = (secret: string, text: string) => ({ ...event, 'x-hub-signature-256': signed(secret, text) })
  expect((await post(body, sign('a-secret-of-github', body), '')).changes).toMatchObject([{ outcome: 'stored' }])
  for (const headers of [event, sign('another-secret-here', body), sign('a-secret-of-github', `${body} `)]) {
    const refused = await post(body, headers)
    expect([refused.status, refused.body.code]).toEqual([401, 'NOT_PROVEN'])
    expect(JSON.stringify(refused.body)).not.toContain('a-secret-of-github')
  }
  const hook = JSON.stringify(gitlab.deployment({ at: minutesAgo(1) }))
  const gitlabHeaders = (token: string) => ({ 'x-gitlab-event': 'Deployment Hook', 'x-gitlab-token': token })
  expect((await post(hook, gitlabHeaders('a-token-of-gitlab-1'), '')).status).toBe(202)
  expect((await post(hook, gitlabHeaders('a-token-of-gitlab-2'), '')).status).toBe(401)
  // A delivery of no known sender still needs a token, and no secret is shown to those who read
  // settings.
  expect((await post({ title: 'x', at: minutesAgo(1) }, {}, '')).status).toBe(401)
  const shown = JSON.stringify((await api.get('/config')).body)
  expect(shown).not.toContain('a-secret-of-github')
  await unset('change.github_secret')
  await unset('change.gitlab_token')
})

test('an event that is not a change is accepted with a reason, so that its sender keeps the webhook on', async () => {
  const { status, body } = await post({ zen: 'Design for failure.' }, { 'x-github-event': 'ping' })
  expect([status, body.changes, body.ignored]).toEqual([202, [], expect.stringContaining('ping')])
})

test('a body that cannot be a change is refused with a reason: its shape, its type, or two senders', async () => {
  const both = { 'x-github-event': 'push', 'x-gitlab-event': 'Push Hook' }
  const cases: [unknown, Record<string, string>, number, RegExp][] = [
    [{ at: minutesAgo(1) }, {}, 400, /"title" is missing/],
    ['[', {}, 400, /not JSON/],
    [{}, { 'x-github-event': 'push' }, 400, /repository\.full_name is missing/],
    [{}, both, 400, /headers name two senders/],
    ['payload=%7B%7D', { 'content-type': 'application/x-www-form-urlencoded' }, 415, /application\/json/],
  ]
  for (const [body, headers, status, detail] of cases) {
    const answer = await post(body, headers)
    expect([answer.status, answer.body.detail]).toEqual([status, expect.stringMatching(detail)])
  }
  expect((await api.get('/ingest/change')).status).toBe(405)
})

test('a body of 1 MB is accepted, and a larger body is refused before it is read', async () => {
  const push = github.push({ pushedAt: 1, message: 'm'.repeat(1_000_000) })
  const taken = await post(push, { 'x-github-event': 'push' })
  expect(taken.changes).toHaveLength(1)
  const { rows } = await sql<{ size: number }>`
    select length(change::text) as size from change where id = ${taken.changes[0]?.id}`.execute(api.db)
  expect(rows[0]?.size).toBeLessThan(2_000)
  const tooLarge = JSON.stringify({ title: 't', at: minutesAgo(1), labels: { a: 'x'.repeat(1_100_000) } })
  expect((await post(tooLarge)).status).toBe(413)
  await set('change.github_secret', 'a-secret-of-github')
  expect((await post(tooLarge, { 'x-github-event': 'push' }, '')).status).toBe(413)
  await unset('change.github_secret')
})

test('hostile text is cleaned before it is stored: no hidden characters, no secret, no NUL', async () => {
  const title = `deploy\u0000 \u202Eevil\u200B AKIAIOSFODNN7EXAMPLE ghp_${'a1B2'.repeat(9)}`
  const { status, changes } = await post({ title, at: minutesAgo(1), labels: { password: 'hunter2-hunter2' } })
  expect(status).toBe(202)
  const stored = await api.db
    .selectFrom('change')
    .selectAll()
    .where('id', '=', changes[0]?.id ?? '')
    .executeTakeFirst()
  expect(JSON.stringify(stored)).not.toMatch(/\\u0000|\u202E|\u200B|ghp_a1B2/)
  const nothing = await post({ title: '\u200B\u200C', at: minutesAgo(1) })
  expect(nothing.status).toBe(202)
})

test('the changes near a resource are its own and those of what it runs on or depends on, each once, newest first', async () => {
  await site()
  await api.db.deleteFrom('change').execute()
  const tell = (title: string, minutes: number, resources: string[]) =>
    post({ title, at: minutesAgo(minutes), resources })
  await tell('the host', 30, ['host:pve-1'])
  await tell('unit and its node', 20, ['service_unit:web-1.nginx', 'node:web-1'])
  await tell('the shop', 10, ['shop'])
  await tell('something else', 5, ['billing'])
  await tell('too long ago', 90, ['node:web-1'])
  expect(await titlesNear('service_unit', 'web-1.nginx')).toEqual(['the shop', 'unit and its node', 'the host'])
  expect(await titlesNear('node', 'web-1')).toEqual(['unit and its node', 'the host'])
  expect(await titlesNear('workload', 'shop')).toEqual(['the shop'])
  const near = await api.get('/inventory/resources/service_unit/web-1.nginx/changes?window=1h')
  expect((near.body.items as unknown as { steps: number }[]).map(({ steps }) => steps)).toEqual([1, 0, 2])
  const own = await api.get('/changes?resource=node:web-1')
  expect((own.body.items as unknown as { title: string }[]).map(({ title }) => title)).toEqual([
    'unit and its node',
    'too long ago',
  ])
  expect((await api.get('/changes?resource=thing:x')).status).toBe(422)
})

test('a list is paged by time, and shows every row exactly once', async () => {
  await api.db.deleteFrom('change').execute()
  const at = minutesAgo(2)
  await post(Array.from({ length: 7 }, (_, each) => ({ title: `change ${each}`, at: each < 4 ? at : minutesAgo(3) })))
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body } = await api.get(`/changes?limit=3${cursor && `&cursor=${encodeURIComponent(cursor)}`}`)
    seen.push(...(body.items as unknown as { id: string }[]).map(({ id }) => id))
    cursor = body.nextCursor as unknown as string | null
  }
  expect([seen.length, new Set(seen).size]).toEqual([7, 7])
})

const core = corePort(api)

/** An incident about nginx on web-1, whose alert began ten minutes ago. */
async function aboutNginx(): Promise<string> {
  await site()
  const labels = { alertname: 'NginxDown', instance: '10.0.0.1:9113', systemd_unit: 'nginx.service' }
  return await openedIncident(api.db, { labels, startsAt: minutesAgo(10) })
}

test('the tool reports in 2 kB what changed and how long before the incident, newest first', async () => {
  const incidentId = await aboutNginx()
  await api.db.deleteFrom('change').execute()
  const tool = tools.get('recent_changes')
  const ask = (resource: string, window = '1h') =>
    tool?.run(tool.input.parse({ resource, window }), { core, incidentId, stepKey: 'k', ifMatch: null })
  expect(await ask('service_unit:web-1.nginx')).toMatchObject({
    data: { found: 0, changes: [], note: expect.stringContaining('unknown changes are possible') },
  })
  await post({ title: 'Deployed the shop', at: minutesAgo(14), resources: ['shop'], author: 'anna', revision: 'abc' })
  await post(
    Array.from({ length: 30 }, (_, at) => ({
      title: `${at} ${'long '.repeat(90)}`,
      at: minutesAgo(20 + at),
      resources: ['node:web-1'],
    })),
  )
  const answer = await ask('service_unit:web-1.nginx')
  const data = answer?.ok ? (answer.data as { found: number; notShown: number; changes: unknown[] }) : null
  expect(Buffer.byteLength(JSON.stringify(data))).toBeLessThanOrEqual(2_000)
  expect(data?.changes[0]).toEqual({
    when: '4 min before it began',
    at: expect.any(String),
    title: 'Deployed the shop',
    source: 'generic',
    onWhatItNeeds: 'workload:shop',
    author: 'anna',
    revision: 'abc',
  })
  expect([data?.found, (data?.notShown ?? 0) + (data?.changes.length ?? 0)]).toEqual([31, 31])
  expect(await ask('node:nowhere')).toMatchObject({ ok: false, status: 404 })
  for (const bad of [{ resource: 'web-1' }, { resource: 'thing:x' }, { resource: 'node:web-1', window: '1y' }])
    expect(tool?.input.safeParse(bad).success).toBe(false)
})

test('the context of an incident lists at most five changes from one hour before it, earlier changes first', async () => {
  const incidentId = await aboutNginx()
  await api.db.deleteFrom('change').execute()
  const incident = await incidentById(api.db, incidentId)
  expect(incident?.resource).toEqual({ kind: 'service_unit', id: 'web-1.nginx' })
  const tell = (title: string, minutes: number, resource = 'node:web-1') =>
    post({ title, at: minutesAgo(minutes), resources: [resource] })
  await tell('too early', 75)
  await tell('early', 60)
  await tell('the cause', 14, 'workload:shop')
  await tell('not ours', 12, 'workload:billing')
  for (const minutes of [9, 8, 7, 6, 5]) await tell(`after ${minutes}`, minutes)
  const lines = await changesAround(api.db, incident as NonNullable<typeof incident>)
  expect(lines.map(({ title }) => title)).toEqual(['after 7', 'after 8', 'after 9', 'the cause', 'early'])
  expect(lines[3]).toMatchObject({
    when: expect.stringMatching(/^[34] min before it began$/),
    onWhatItNeeds: 'workload:shop',
  })
  expect(lines[2]?.when).toMatch(/^(6\d s|[12] min) after it began$/)

  const deps = { db: api.db, prompts: readPrompts(), protocol: 'native' as const, model: 'scripted', environment: {} }
  const { claim, assembleContext } = contextActivities(deps)
  await new MockActivityEnvironment({
    workflowExecution: { workflowId: `investigate:${incidentId}:1`, runId: 'r' },
  }).run(async () => {
    await claim({ incidentId, attempt: 1, role: 'leader', groupId: 'grp_test' })
    await assembleContext(incidentId, 1)
  })
  const [assembled] = (await eventsOf(api.db, incidentId)).flatMap((event) =>
    event.kind === 'context_assembled' ? [event.metadata] : [],
  )
  const context = JSON.parse(await bodyText(api.db, assembled?.context.digest ?? ''))
  expect([assembled?.parts.changes, context.changes]).toEqual(['ok', lines])
  const offered = await bodyText(api.db, assembled?.more?.digest ?? '')
  expect(offered).toContain('recent_changes')
})

test('changes of more than 90 days ago are deleted', async () => {
  await api.db.deleteFrom('change').execute()
  await post([
    { title: 'old', at: minutesAgo(1) },
    { title: 'new', at: minutesAgo(1) },
  ])
  await sql`update change set received_at = nightshift_now() - interval '91 days' where title = 'old'`.execute(
    api.owner,
  )
  await dropOldChanges(api.db)
  expect(await api.db.selectFrom('change').select('title').execute()).toEqual([{ title: 'new' }])
})
