import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { rule } from '../../../activities/rule.ts'
import { send } from '../../../activities/send.ts'
import { toolContext, verifyWrite } from '../../../activities/verify-write.ts'
import { ensureOperator } from '../../../db/access/tokens.ts'
import { storeGrant } from '../../../db/approvals/grants.ts'
import { append } from '../../../db/log/append.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { acceptEffect, noteJobOfEffect } from '../../../db/writes/effects.ts'
import { actionDigest } from '../../../domain/digest.ts'
import { agentActor } from '../../../domain/event.ts'
import { parseJobs } from '../../../effects/jobs/jobs.ts'
import { runJob } from '../../../tools/jobs.ts'
import { announced, approvedBySomebody, approvedWrite } from '../../support/announced.ts'
import { corePort, useApi } from '../../support/api.ts'
import { claimedIncident, moveClock } from '../../support/database.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { scriptedPlatform } from '../../support/scripted-platform.ts'

const hosts = temporaryDirectory()
afterAll(hosts.remove)
process.env.NIGHTSHIFT_JOB_TOKEN = 'correct-horse-battery'
process.env.DATABASE_URL = 'postgres://of-the-api'

const playbook = fileURLToPath(new URL('../../effects/stand-ins/playbook.sh', import.meta.url))
const declared = parseJobs(`
jobs:
  - name: converge-node
    about: Re-applies the configuration of a node
    resources: { kind: node, pattern: "node-osl-[12]" }
    run: &run
      command: [${playbook}, ${hosts.path}, --limit, "{id}"]
      env: { JOB_TOKEN: { from: env:NIGHTSHIFT_JOB_TOKEN } }
    check:
      <<: *run
      command: [${playbook}, ${hosts.path}, --limit, "{id}", --check, --diff]
      noChanges: { pattern: "changed=0 .*failed=0", unless: "changed=[1-9]|failed=[1-9]" }
  - name: no-check
    about: Does something to it
    resources: { kind: node, ids: [node-osl-2] }
    run: { command: [${playbook}, ${hosts.path}, --limit, node-osl-2] }
  - name: other-words
    about: Writes what is wanted, and says so otherwise than its check mode
    resources: { kind: node, ids: [node-osl-2] }
    run: { command: [echo, "rewrote it"] }
    check:
      command: [echo, would-write it]
      noChanges: { unless: would-write }
  - name: slow
    about: Takes longer than it may
    resources: { kind: node, ids: [node-osl-2] }
    run: { command: [sleep, "60"] }
    timeoutSeconds: 1
`)
const api = useApi(() => ({ platform: scriptedPlatform(), jobs: declared }))

const host = (text: string, id = 'node-osl-2') => writeFileSync(join(hosts.path, id), text)
const called = () => readFileSync(join(hosts.path, 'calls'), 'utf8').trim().split('\n').filter(Boolean)
beforeEach(() => {
  host('drifted')
  writeFileSync(join(hosts.path, 'calls'), '')
  api.api?.deps.jobs.recent.clear()
})

const about = 'kind=node&id=node-osl-2'
const body = { kind: 'node', id: 'node-osl-2', reason: 'it has drifted' }
type Prepared = {
  stateFingerprint: string
  asks: { risk: string }
  dryRun: { possible: boolean; details: Record<string, unknown>; proof: unknown }
}
const prepared = async (job = 'converge-node') => {
  const answer = await api.get(`/jobs/${job}/preparation?${about}`)
  expect([answer.status, answer.body.done]).toEqual([200, true])
  return answer.body.preparation as unknown as Prepared
}
const sends = new Map<string, ReturnType<typeof approvedWrite>>()
/** As a run sends it after a person approved it; the same name is the same call again. */
async function run(ifMatch: string | null, name: string, job = 'converge-node') {
  const { kind, id } = body
  const sent = sends.get(name) ?? approvedWrite(api, 'run_job', { job, kind, id })
  sends.set(name, sent)
  const headers: Record<string, string> = ifMatch === null ? {} : { 'if-match': ifMatch }
  return await api.post(`/jobs/${job}/run`, { ...(await sent), body, headers })
}

test('jobs that are declared for a resource are listed with it', async () => {
  const { items } = (await api.get(`/jobs?${about}`)).body as unknown as { items: { name: string }[] }
  expect(items.map(({ name }) => name)).toEqual(['converge-node', 'no-check', 'other-words', 'slow'])
  expect((await api.get('/jobs?kind=node&id=node-osl-1')).body.items).toMatchObject([
    { name: 'converge-node', system: 'command', hasCheck: true, isProvable: true },
  ])
  const shown = (await api.get('/inventory/resources/node/node-osl-1')).body
  expect(shown.jobs).toEqual([{ name: 'converge-node', about: 'Re-applies the configuration of a node' }])
  expect((await api.get('/inventory/resources/shard/db-osl-1')).body.jobs).toBeUndefined()
})

test('the dry run of a job is the real output of its check mode, without secrets, and changes nothing', async () => {
  const { dryRun, asks } = await prepared()
  const { told } = dryRun.details.rehearsal as { told: string[] }
  expect(told).toEqual(expect.arrayContaining(['-drifted', '+wanted', expect.stringContaining('changed=1')]))
  expect(told.join('\n')).not.toContain('correct-horse')
  expect(told.join('\n')).toContain('database is unset')
  expect([asks.risk, dryRun.proof]).toMatchObject(['medium', { by: 'state' }])
  expect(called()).toEqual(['--check node-osl-2'])
  expect(readFileSync(join(hosts.path, 'node-osl-2'), 'utf8')).toBe('drifted')
})

test('check mode output beyond the card is attached as text, without secrets and without the part that the card shows', async () => {
  const short = (await prepared()).dryRun
  expect(short).not.toHaveProperty('attachments')
  host(Array.from({ length: 300 }, (_, line) => `setting ${line}`).join('\n'))
  const { attachments } = (await prepared()).dryRun as { attachments?: { name: string; digest: string }[] }
  expect(attachments).toMatchObject([{ name: 'check of converge-node.txt', kind: 'text' }])
  const row = await api.db
    .selectFrom('resultBody')
    .select('bytes')
    .where('digest', '=', attachments?.[0]?.digest ?? '')
    .executeTakeFirstOrThrow()
  const stored = row.bytes.toString()
  expect(stored).toContain('setting 150')
  expect(stored).not.toContain('correct-horse')
})

test('the fingerprint stays the same while the output of the check mode stays the same, at any time', async () => {
  const { stateFingerprint } = await prepared()
  await moveClock(api.owner, '1 minute')
  expect((await prepared()).stateFingerprint).toBe(stateFingerprint)
  host('drifted elsewhere')
  expect((await prepared()).stateFingerprint).not.toBe(stateFingerprint)
})

test('directories that Ansible creates for a run are left out of the fingerprint only as whole paths', async () => {
  const fingerprintOf = async (text: string) => {
    host(`drifted ${text}`)
    return (await prepared()).stateFingerprint
  }
  const plain = await fingerprintOf('/root/.ansible/tmp/ansible-tmp-17.1-2-3/source')
  expect(await fingerprintOf('/root/.ansible/tmp/ansible-tmp-18.4-5-6/source')).toBe(plain)
  for (const other of [
    '/root/.ansible/tmp/ansible-tmp-18.4-5-6/other',
    '/etc/ansible-tmp-18.4-5-6/source',
    'ansible-tmp-rm-rf/source',
    'x/root/.ansible/tmp/ansible-tmp-18.4-5-6/source',
    '/root/.ansible/tmp/ansible-tmp-18.4-5-6-and-more/source',
  ])
    expect(await fingerprintOf(other)).not.toBe(plain)
})

test('a person who runs a job requests it through an incident that names them, and nothing runs before', async () => {
  const { stateFingerprint } = await prepared()
  const headers = { 'if-match': stateFingerprint }
  const answer = await api.post('/jobs/converge-node/run', { as: api.tokens.operator, body, headers })
  expect(answer.body).toMatchObject({ status: 'under_way', incidentId: expect.stringMatching(/^inc_/) })
  const [row] = await eventsOf(api.db, String(answer.body.incidentId))
  expect(row).toMatchObject({ kind: 'change_requested', actor: 'user:operator', metadata: { tool: 'run_job' } })
  expect(called()).toEqual(['--check node-osl-2'])
})

test('a job runs once per key, and its check mode proves the result', async () => {
  const { stateFingerprint } = await prepared()
  const answers = [await run(stateFingerprint, 'once'), await run(stateFingerprint, 'once')]
  expect(answers.map(({ status }) => status)).toEqual([200, 200])
  const changed = ['converge-node: what its check mode said would change']
  expect(answers[0]!.body).toMatchObject({ exit_code: 0, output: expect.stringContaining('changed=1'), changed })
  expect(JSON.stringify(answers[0]!.body)).not.toContain('correct-horse')
  // The check of just now counts: it is not made a second time.
  expect(called()).toEqual(['--check node-osl-2', 'run node-osl-2'])
  expect((await api.get(`/jobs/converge-node/observation?${about}`)).body).toMatchObject({
    observation: { holds: true },
  })
  const nothing = await api.get(`/jobs/converge-node/preparation?${about}`)
  expect([nothing.status, nothing.body.code]).toEqual([409, 'NOTHING_TO_CHANGE'])
})

test('a run whose output differs from its check mode does not count as a run that changed nothing', async () => {
  const { stateFingerprint } = await prepared('other-words')
  const ran = await run(stateFingerprint, 'in other words', 'other-words')
  expect(ran.body).toMatchObject({
    output: 'rewrote it\n',
    changed: ['other-words: what its check mode said would change'],
  })
})

test('a change since the decision stops the job before it begins', async () => {
  const { stateFingerprint } = await prepared()
  api.api.deps.jobs.recent.clear()
  host('drifted elsewhere')
  const answer = await run(stateFingerprint, 'drift')
  expect([answer.status, answer.body.code]).toEqual([502, 'EFFECT_FAILED'])
  expect(answer.body.detail).toContain('was not started: the output of its check mode changed')
  const [, ...rest] = stateFingerprint.split('.')
  const other = await run(['0'.repeat(16), ...rest].join('.'), 'declaration')
  expect([other.status, other.body.code]).toEqual([412, 'STATE_CHANGED'])
  expect((await run(null, 'unnamed')).status).toBe(428)
  expect(called().filter((each) => each.startsWith('run'))).toEqual([])
})

test('without a check mode the card says so, the risk is high, and nothing is proven', async () => {
  const { dryRun, asks, stateFingerprint } = await prepared('no-check')
  expect([dryRun.possible, asks.risk, dryRun.proof]).toMatchObject([false, 'high', { by: 'nothing' }])
  const ran = await run(stateFingerprint, 'unproven', 'no-check')
  expect([ran.status, ran.body.changed]).toEqual([200, null])
  expect((await api.get(`/jobs/no-check/observation?${about}`)).body).toMatchObject({ observation: { holds: null } })
})

test('a job that exceeds its time limit is stopped and counts as failed', async () => {
  const { stateFingerprint } = await prepared('slow')
  const answer = await run(stateFingerprint, 'slow', 'slow')
  expect([answer.status, answer.body.detail]).toEqual([502, expect.stringContaining('stopped at its deadline of 1 s')])
})

test('an unknown name is refused with the list of known names', async () => {
  const asked = async (path: string) => {
    const { status, body } = await api.get(`/jobs/${path}`)
    return [status, body.detail]
  }
  expect(await asked(`none/preparation?${about}`)).toEqual([404, expect.stringContaining('converge-node, no-check')])
  expect(await asked('no-check/preparation?kind=node&id=node-osl-1')).toEqual([
    422,
    'no-check is not for node node-osl-1. Declared for this resource: converge-node.',
  ])
  expect(await asked('converge-node/preparation?kind=node&id=node-osl-9')).toEqual([404, expect.any(String)])
  expect(called()).toEqual([])
})

test('a run that announced the job without an approval is refused, and so is a run that announced nothing', async () => {
  const incidentId = await claimedIncident(api.db)
  const key = await announced(api.db, incidentId, 'run_job', { job: 'converge-node', kind: 'node', id: 'node-osl-2' })
  const { stateFingerprint } = await prepared()
  for (const each of [key, 'unknown']) {
    const headers = { 'if-match': stateFingerprint }
    const answer = await api.post('/jobs/converge-node/run', { body, key: each, headers, as: api.tokens.agent })
    expect([answer.status, answer.body.code]).toEqual([403, 'UNJUDGED'])
  }
})

/** An effect of a job whose process is gone, as far as it had come. */
async function left(key: string, phase: 'checking' | 'begun', ref: string | null = null) {
  const resource = { kind: 'node', id: 'node-osl-2' } as const
  const digest = actionDigest('run_job', { job: 'converge-node', ...resource })
  await acceptEffect(api.db, { key, incidentId: null, tool: 'run_job', actionDigest: digest })
  await noteJobOfEffect(api.db, key, { name: 'converge-node', system: 'command', phase, ref, resource })
  await sql`update effect set started_at = nightshift_now() - interval '10 seconds' where key = ${key}`.execute(
    api.owner,
  )
  return (await api.get(`/effects/${key}`)).body
}

test('the end of a command whose process is gone is unknown, unless the command never began', async () => {
  expect(await left('lost-1', 'begun')).toMatchObject({ status: 'indeterminate' })
  expect(await left('lost-2', 'checking')).toMatchObject({ status: 'failed' })
})

// What follows is a run of the agent without its model: the activities, the kernel and real rows.

const core = corePort(api)

const args = { job: 'converge-node', kind: 'node', id: 'node-osl-2', reason: 'it has drifted' }

async function lookedUp(incidentId: string, kind: 'node' | 'vm' = 'node') {
  await api.db.transaction().execute((trx) =>
    append(trx, incidentId, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      turn: 1,
      detail: '',
      stepKey: `${incidentId}.1:1:tool_finished:0`,
      metadata: {
        callId: 'c1_0',
        tool: 'get_node',
        arguments: { id: args.id },
        effect: 'read',
        targets: [{ kind, id: args.id }],
        outcome: 'done',
        result: { ok: true, meta: {} },
        body: null,
        durationMs: 1,
        discovered: [{ kind, id: args.id, name: args.id, aliases: [], seen: true }],
      },
    }),
  )
}

const signal = new AbortController().signal

/** One pass of `act` over the proposed call: prepared, then judged. */
async function judged(incidentId: string, approvalId: string | null) {
  const place = { incidentId, attempt: 1, turn: 2, call: 0, approvalId }
  const context = toolContext({ core }, place, signal)
  const preparation = await runJob.prepare!(args, context)
  const call = { id: 'c2_0', tool: 'run_job', arguments: args, problem: null, edit: null }
  const ruled = await api.db
    .transaction()
    .execute((trx) => rule({ environment: {} }, trx, place, { call, prepared: { ok: true, preparation }, later: null }))
  const rulings = (await eventsOf(api.db, incidentId)).filter((event) => event.kind === 'call_judged')
  return { place, ruled, ruling: rulings.at(-1)?.metadata as { code: string; risk: string; verdict: string } }
}

async function proposed() {
  const incidentId = await claimedIncident(api.db, { labels: { node: 'node-osl-2' } })
  await lookedUp(incidentId)
  // The incident's own resource: what is reversible there runs unasked, a job does not.
  await api.owner
    .updateTable('incident')
    .set({ resourceKind: 'node', resourceId: 'node-osl-2' })
    .where('id', '=', incidentId)
    .execute()
  return incidentId
}

test('a run asks with the output of the check mode, runs the approved job, and its repair is proven', async () => {
  const incidentId = await proposed()
  const first = await judged(incidentId, null)
  expect(first.ruling).toMatchObject({ verdict: 'ask', code: 'RISK_MEDIUM', risk: 'medium' })
  if (first.ruled.kind !== 'ask') throw new Error(first.ruled.kind)
  const { approvalId } = first.ruled
  expect(JSON.stringify((await api.get(`/approvals/${approvalId}`)).body)).toContain('+wanted')

  await approvedBySomebody(api.db, approvalId)
  const second = await judged(incidentId, approvalId)
  if (second.ruled.kind !== 'run') throw new Error(second.ruling.code)
  const leases = await api.db.selectFrom('targetLease').select('target').where('incidentId', '=', incidentId).execute()
  expect(leases).toEqual([{ target: 'node:node-osl-2' }])
  const finished = await send({ db: api.db, core }, second.place, second.ruled.started, { again: false, signal })
  expect(finished.metadata).toMatchObject({ outcome: 'done', result: { ok: true } })
  await verifyWrite({ db: api.db, core }, second.place, signal)
  const verification = (await eventsOf(api.db, incidentId)).find((event) => event.kind === 'verification')
  expect(verification?.metadata).toMatchObject({
    outcome: 'held',
    observed: expect.stringContaining('nothing would change'),
  })
  expect(called()).toEqual(['--check node-osl-2', '--check node-osl-2', 'run node-osl-2', '--check node-osl-2'])
  expect(JSON.stringify(await eventsOf(api.db, incidentId))).not.toContain('correct-horse')
  // Claim and decision were written past their doors here; what is stored of the effect holds
  // against the rows.
  const { differences } = (await api.get('/verify?limit=100')).body as unknown as { differences: { subject: string }[] }
  expect(differences.filter(({ subject }) => !/^(inc|apr)_[0-9a-z]{26}$/.test(subject))).toEqual([])
})

test('a job whose declaration changed between approval and run is asked again', async () => {
  const incidentId = await proposed()
  const first = await judged(incidentId, null)
  if (first.ruled.kind !== 'ask') throw new Error(first.ruled.kind)
  await approvedBySomebody(api.db, first.ruled.approvalId)
  const { jobs } = api.api.deps
  const before = jobs.declared
  Object.assign(jobs, { declared: before.map((job) => ({ ...job, timeoutSeconds: 30 })) })
  const second = await judged(incidentId, first.ruled.approvalId)
  Object.assign(jobs, { declared: before })
  expect(second.ruling).toMatchObject({ verdict: 'ask', code: 'DRIFT' })
  expect(called().filter((each) => each.startsWith('run'))).toEqual([])
})

test('a grant and a lower risk in the settings change nothing, because a job is asked every time', async () => {
  const { ruled } = await judged(await proposed(), null)
  if (ruled.kind !== 'ask') throw new Error(ruled.kind)
  const operatorId = await ensureOperator(api.db, 'anna', 'admin')
  await api.db.transaction().execute(async (trx) => {
    const approval = await trx
      .selectFrom('approval')
      .selectAll()
      .where('id', '=', ruled.approvalId)
      .executeTakeFirstOrThrow()
    await storeGrant(trx, approval, operatorId, { uses: 20, hours: 8 })
  })
  await sql`insert into platform_config (key, value) values ('approval.risk.run_job', 'none')`.execute(api.owner)
  expect((await judged(await proposed(), null)).ruling).toMatchObject({ verdict: 'ask', risk: 'medium' })
})

test('a resource of another kind with the same id does not count as read', async () => {
  const incidentId = await claimedIncident(api.db)
  await lookedUp(incidentId, 'vm')
  expect((await judged(incidentId, null)).ruling).toMatchObject({ verdict: 'refuse', code: 'STRICT_RESOLUTION' })
})
