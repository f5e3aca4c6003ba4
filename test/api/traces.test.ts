import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { standingStops } from '../../db/trust/stops.ts'
import { verifyChanges, verifyKept } from '../../db/verify/row-changes.ts'
import { asked } from '../support/announced.ts'
import { twoWaves, useApi } from '../support/api.ts'
import { claimedIncident, openedIncident } from '../support/database.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

const platform = scriptedPlatform()
const api = useApi(() => ({ platform }))

/**
 * What writes only what it computes, what machines alone send, or what somebody else's server is
 * asked: no person's act on anything.
 */
const withoutTrace: Record<string, string> = {
  'POST /ingest/change': 'a sender of changes, named by its row',
  'POST /ingest/{dialect}': 'a sender of alerts, named by the alert',
  'POST /alerts/explain': 'computes',
  'POST /judge': 'computes',
  'POST /policy/explain': 'computes',
  'POST /policy/lint': 'computes',
  'POST /placement/proposals': 'plans, and executes nothing',
  'POST /sources/{name}/test': 'asks the source whether it answers',
  'POST /devices/{id}/health': 'asks the device whether it answers',
  'POST /capability-gaps': 'a note of the agent, in the log of its incident',
  'PUT /model/passport': 'a measurement, with who made it in its row',
}

/** Needs a mesh, a browser or a receiver: the file that holds its row, and the word of that row. */
const elsewhere: Record<string, [file: string, word: string]> = {
  'POST /databases/{name}/cancel_query': ['test/api/routes/databases.test.ts', 'change_requested'],
  'POST /databases/{name}/terminate_session': ['test/api/routes/databases.test.ts', 'change_requested'],
  'POST /databases/{name}/drop_replication_slot': ['test/api/routes/databases.test.ts', 'change_requested'],
  'POST /databases/{name}/start_replica': ['test/api/routes/databases.test.ts', 'change_requested'],
  'POST /devices/{id}/calls': ['test/api/routes/device-calls.test.ts', 'device.called'],
  'POST /devices/{id}/enrolment': ['test/api/routes/devices.test.ts', 'device.enrolment_minted'],
  'POST /devices/{id}/revoke': ['test/api/routes/devices.test.ts', 'device.revoked'],
  'PUT /devices/{id}': ['test/api/routes/devices.test.ts', 'device.added'],
  'PUT /inventory/imports/{id}': ['test/api/routes/inventory.test.ts', 'inventory.imported'],
  'POST /effects/{key}/undo': ['test/api/routes/undo.test.ts', 'change_requested'],
  'POST /jobs/{name}/run': ['test/api/routes/jobs.test.ts', 'change_requested'],
  'POST /incidents/{id}/review': ['test/e2e/manual-change.test.ts', 'change_reviewed'],
  'POST /policy/accept': ['test/api/routes/site-policy.test.ts', 'policy.accepted'],
  'POST /push/subscriptions': ['test/notify/push.test.ts', 'push.subscribed'],
  'POST /push/subscriptions/{id}/remove': ['test/notify/push.test.ts', 'push.removed'],
  'POST /sns/topics/{id}/confirm': ['test/api/routes/ingest-doors.test.ts', 'source.topic_confirmed'],
  'POST /sns/topics/{id}/remove': ['test/api/routes/ingest-doors.test.ts', 'source.topic_removed'],
  'POST /sources/read': ['test/sources/ask.test.ts', 'source.read'],
  'POST /webhooks/{name}/test': ['test/api/routes/settings.test.ts', 'webhook.tested'],
  'POST /incidents/{id}/postmortem': ['test/api/routes/incidents.test.ts', 'postmortem.edited'],
  'POST /grants/{id}/revoke': ['test/api/routes/approval-detail.test.ts', 'grant.revoked'],
}

type Sent = { path: string; body?: object; method?: 'PUT'; headers?: Record<string, string> }

async function decisionOf(id: string, decision: string): Promise<Sent> {
  const { token } = (await api.post(`/approvals/${id}/token`, { body: { decision } })).body
  return { path: `/approvals/${id}/decision`, body: { decision, token } }
}

const opened = () => openedIncident(api.db)
const mitigated = async () => {
  const id = await claimedIncident(api.db)
  await api.post(`/incidents/${id}/escalate`, { body: { reason: 'half of it', category: 'mitigated' } })
  return id
}
const question = async () => await asked(api.db, await claimedIncident(api.db))
const vm = async (action: string, id: string): Promise<Sent> => {
  const { stateFingerprint } = (await api.get(`/vms/${id}/${action}?dry_run=true`)).body
  return {
    path: `/vms/${id}/${action}`,
    body: { reason: 'for a test' },
    headers: { 'if-match': `${stateFingerprint}` },
  }
}
const source = {
  kind: 'prometheus',
  url: 'http://127.0.0.1:9',
  credential: null,
  caFile: null,
  timeoutSeconds: 1,
  options: {},
}

/** One person's act through each other operation that writes. */
const acts: Record<string, () => Promise<Sent>> = {
  'POST /incidents': async () => ({
    path: '/incidents',
    body: { type: 'question', severity: 'info', title: 'Is it well?' },
  }),
  'POST /agent': async () => ({ path: '/agent', body: { question: 'Is all well?' } }),
  'POST /incidents/{id}/events': async () => ({
    path: `/incidents/${await opened()}/events`,
    body: { action: 'commented', detail: 'seen' },
  }),
  'POST /incidents/{id}/expected': async () => ({
    path: `/incidents/${await opened()}/expected`,
    body: { subject: 'type', until: new Date(Date.now() + 3_600_000).toISOString(), reason: 'a drill' },
  }),
  'POST /incidents/{id}/resolve': async () => ({
    path: `/incidents/${await opened()}/resolve`,
    body: { resolution: 'done by hand', outcome: 'repaired' },
  }),
  'POST /incidents/{id}/escalate': async () => ({
    path: `/incidents/${await opened()}/escalate`,
    body: { reason: 'needs hands' },
  }),
  'POST /incidents/{id}/cancel': async () => ({
    path: `/incidents/${await opened()}/cancel`,
    body: { reason: 'by mistake' },
  }),
  'POST /incidents/{id}/hold': async () => ({
    path: `/incidents/${await opened()}/hold`,
    body: { reason: 'The insurer asks.' },
  }),
  'POST /incidents/{id}/release': async () => {
    const id = await opened()
    await api.post(`/incidents/${id}/hold`, { body: { reason: 'The insurer asks.' } })
    return { path: `/incidents/${id}/release`, body: { reason: 'The case is over.' } }
  },
  'POST /incidents/{id}/take': async () => ({ path: `/incidents/${await opened()}/take` }),
  'POST /incidents/{id}/give-back': async () => {
    const id = await opened()
    await api.post(`/incidents/${id}/take`)
    return { path: `/incidents/${id}/give-back` }
  },
  'POST /incidents/{id}/investigate': async () => {
    const id = await opened()
    await api.post(`/incidents/${id}/cancel`, { body: { reason: 'again' } })
    return { path: `/incidents/${id}/investigate` }
  },
  'POST /approvals/{id}/token': async () => ({
    path: `/approvals/${await question()}/token`,
    body: { decision: 'approve' },
  }),
  'POST /approvals/{id}/decision': async () => await decisionOf(await question(), 'approve'),
  'POST /approvals/{id}/extend': async () => ({ path: `/approvals/${await question()}/extend` }),
  'POST /shards/{id}/converge': async () => {
    await api.get('/shards/db-osl-1/nodes')
    return { path: '/shards/db-osl-1/converge', body: { reason: 'for a test' } }
  },
  'POST /vms/{id}/stop': async () => await vm('stop', 'vm-1'),
  'POST /vms/{id}/restart': async () => await vm('restart', 'vm-1'),
  'POST /vms/{id}/start': async () => {
    Object.assign(platform.inventoryState.vms.find(({ id }) => id === 'vm-1')!, { running: false })
    api.api.deps.state.forget()
    return await vm('start', 'vm-1')
  },
  'PUT /inventory': async () => ({ path: '/inventory', method: 'PUT', body: { resources: [] } }),
  'PUT /sources/{name}': async () => ({ path: '/sources/traced', method: 'PUT', body: source }),
  'POST /sources/{name}/remove': async () => ({ path: '/sources/traced/remove' }),
  'PUT /destinations/{name}': async () => ({
    path: '/destinations/traced',
    method: 'PUT',
    body: { kind: 'webhook', secrets: { url: 'http://127.0.0.1:9/traced' } },
  }),
  'POST /destinations/{name}/test': async () => ({ path: '/destinations/traced/test' }),
  'POST /destinations/{name}/remove': async () => ({ path: '/destinations/traced/remove' }),
  'PUT /config/{key}': async () => ({
    path: '/config/alert.quiet',
    method: 'PUT',
    body: { value: '60', reason: 'a test' },
  }),
  'POST /tokens': async () => ({ path: '/tokens', body: { name: 'traced', role: 'viewer' } }),
  'POST /tokens/{id}/revoke': async () => {
    const { id } = (await api.post('/tokens', { body: { name: 'to end', role: 'viewer' } })).body
    return { path: `/tokens/${id}/revoke` }
  },
  'POST /expectations/{id}/end': async () => {
    const until = new Date(Date.now() + 3_600_000).toISOString()
    const mark = { subject: 'type', until, reason: 'a drill' }
    const { id } = (await api.post(`/incidents/${await opened()}/expected`, { body: mark })).body
    return { path: `/expectations/${id}/end` }
  },
  'POST /incidents/{id}/messages': async () => ({
    path: `/incidents/${await claimedIncident(api.db)}/messages`,
    body: { text: 'Look at the certificate.' },
  }),
  'POST /follow-ups/{id}': async () => ({ path: `/follow-ups/${await mitigated()}`, body: { dueOn: '2099-12-02' } }),
  'POST /follow-ups/{id}/close': async () => ({
    path: `/follow-ups/${await mitigated()}/close`,
    body: { note: 'the disk was replaced' },
  }),
  'POST /trust/{type}/{tool}': async () => {
    await openedIncident(api.db, { labels: { alertname: 'x', incident_type: 'to_trust' } })
    return { path: '/trust/to_trust/converge_shard', body: { to: 'shadow', reason: 'it is new' } }
  },
  'POST /stops': async () => {
    await openedIncident(api.db, { labels: { alertname: 'x', incident_type: 'to_stop' } })
    return { path: '/stops', body: { type: 'to_stop', reason: 'a drill' } }
  },
  'POST /stops/{id}/resume': async () => {
    await openedIncident(api.db, { labels: { alertname: 'x', incident_type: 'to_resume' } })
    await api.post('/stops', { body: { type: 'to_resume', reason: 'a drill' } })
    const [stop] = (await standingStops(api.db)).filter(({ type }) => type === 'to_resume')
    return { path: `/stops/${stop?.id}/resume`, body: { reason: 'the drill is over' } }
  },
  'POST /incidents/{id}/grade': async () => {
    const id = await claimedIncident(api.db)
    await api.post(`/incidents/${id}/escalate`, { body: { reason: 'needs hands' } })
    return { path: `/incidents/${id}/grade`, body: { verdict: 'partly' } }
  },
  'POST /placement/proposals/{id}/execute': planToExecute,
  'POST /operators/{name}/erasure': async () => {
    await api.put('/operators/leaves', {
      body: { role: 'viewer', maxRisk: 'none', incidentTypes: null, disabled: false },
    })
    return { path: '/operators/leaves/erasure', body: { confirm: 'leaves' } }
  },
  'PUT /operators/{name}': async () => ({
    path: '/operators/traced',
    method: 'PUT',
    body: { role: 'viewer', maxRisk: 'none', incidentTypes: null, disabled: false },
  }),
}

/** A plan for a host that is down, as it is carried out on the state that it was made for. */
async function planToExecute(): Promise<Sent> {
  Object.assign(platform, { inventoryState: twoWaves() })
  api.api.deps.state.forget()
  const body = { intent: 'recover', host_ids: ['c'], use_rack_constraints: false, incident_id: null }
  const plan = (await api.post('/placement/proposals', { body })).body
  const headers = { 'if-match': String(plan.stateFingerprint) }
  return { path: `/placement/proposals/${plan.proposal_id}/execute`, body: { reason: 'for a test' }, headers }
}

async function operations(): Promise<string[]> {
  const document = (await (await api.api.app.request('/openapi.json')).json()) as {
    paths: Record<string, Record<string, unknown>>
  }
  return Object.entries(document.paths)
    .flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace('/api/v1', '')}`),
    )
    .filter((operation) => !operation.startsWith('GET '))
}

/** The rows that name the person: of the audit, and of every log. */
async function rowsOfAdmin(): Promise<number> {
  const audit = api.db
    .selectFrom('audit')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('who', '=', 'admin')
  const log = api.db
    .selectFrom('incidentEvent')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('actor', '=', 'user:admin')
  const settings = api.db
    .selectFrom('platformConfigRevision')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('actor', '=', 'user:admin')
  const counts = await Promise.all([audit, log, settings].map((query) => query.executeTakeFirstOrThrow()))
  return counts.reduce((sum, { count }) => sum + Number(count), 0)
}

test('every operation that writes leaves a row with the person, or says why it leaves none', async () => {
  const known = [...Object.keys(withoutTrace), ...Object.keys(elsewhere), ...Object.keys(acts)]
  expect((await operations()).toSorted()).toEqual(known.toSorted())
})

test.each(Object.entries(elsewhere))('the row of %s is stored elsewhere: %j', (_operation, [file, word]) => {
  expect(readFileSync(file, 'utf8')).toContain(word)
})

test.each(Object.keys(acts))('%s leaves a row with the name of the person', async (operation) => {
  const { path, body, method, headers } = await (acts[operation] as () => Promise<Sent>)()
  const before = await rowsOfAdmin()
  const answer = await (method === 'PUT' ? api.put : api.post)(path, {
    ...(body && { body }),
    ...(headers && { headers }),
  })
  expect([operation, answer.status < 300 ? 'done' : answer.body]).toEqual([operation, 'done'])
  expect([operation, (await rowsOfAdmin()) > before]).toEqual([operation, true])
})

test('verify finds no unexplained change after actions through the product', async () => {
  const found = [...(await verifyChanges(api.db, 0)).differences, ...(await verifyKept(api.db)).differences]
  // Fixtures of tests claim incidents, and change rows as the owner.
  expect(found.filter(({ subject, what }) => !subject.startsWith('inc_') && !what.includes(' by postgres '))).toEqual(
    [],
  )
})
