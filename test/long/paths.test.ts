import { mkdirSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { actActivities } from '../../activities/act.ts'
import { claim } from '../../activities/claim.ts'
import { principalOf } from '../../db/access/principals.ts'
import { decide } from '../../db/approvals/decide.ts'
import { append } from '../../db/log/append.ts'
import { agentActor } from '../../domain/event.ts'
import { investigationId, stepKey } from '../../domain/step-key.ts'
import { startAgent } from '../../mesh/agent/start.ts'
import { corePort } from '../support/api.ts'
import { openedIncident } from '../support/database.ts'
import { mintedToken } from '../support/decision-tokens.ts'
import { freePort, temporaryDirectory } from '../support/directory.ts'
import { answeredWith } from '../support/events.ts'
import { enrol, useMeshApi } from '../support/mesh-api.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

const root = new URL('../../', import.meta.url).href

/**
 * The files of the product in which a function ran while `act` did, in the order of their names: by
 * V8's call counts, which begin at zero with it. What only loads counts for nothing; neither do
 * tests and packages.
 */
async function traceFiles(act: () => Promise<unknown>): Promise<string[]> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  try {
    await act()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const ran = result.filter(({ functions }) =>
      functions.some(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0),
    )
    const files = ran
      .filter(({ url }) => url.startsWith(root) && !/\/(node_modules|test|bench)\//.test(url))
      .map(({ url }) => url.slice(root.length).replace(/\?.*/, ''))
    return [...new Set(files)].sort()
  } finally {
    await session.post('Profiler.stopPreciseCoverage')
    session.disconnect()
  }
}

/**
 * How many files of the product work on a call, as a newcomer would have to open them: act, API,
 * effect, agent, in one process. What runs in processes besides (the planner's search, a command on
 * a device) is not among them.
 */
const api = useMeshApi({ platform: scriptedPlatform() })
const directory = temporaryDirectory()
let agent: Awaited<ReturnType<typeof startAgent>> | undefined
afterAll(async () => {
  await agent?.stop()
  directory.remove()
})

let incidentId = ''
let turn = 0

/** An incident that a run of this name has claimed. */
async function asRun<T>(act: () => Promise<T>): Promise<T> {
  const workflowId = investigationId({ incidentId, attempt: 1 })
  const environment = new MockActivityEnvironment({ workflowExecution: { workflowId, runId: 'run-1' } })
  return await environment.run(act)
}

/** Acts on a call that a model proposes now; with an approval, on the one of this turn again. */
async function acted(tool: string, args: Record<string, unknown>) {
  turn += 1
  const place = { incidentId, attempt: 1, turn, call: 0 }
  const calls = [{ id: `c${turn}_0`, tool, arguments: args, problem: null }]
  await api.db.transaction().execute((trx) =>
    append(trx, incidentId, 1, {
      kind: 'model_answered',
      actor: agentActor,
      turn,
      detail: '',
      stepKey: stepKey(place, turn, 'model_answered', 0),
      metadata: answeredWith(calls),
    }),
  )
  const { act } = actActivities({ db: api.db, core: corePort(api), environment: {} })
  return (approvalId: string | null) => asRun(() => act({ ...place, approvalId }))
}

async function openRun(resource: Record<string, string>) {
  incidentId = await openedIncident(api.db, { labels: { alertname: 'disk_pressure', ...resource } })
  const run = { incidentId, attempt: 1, role: 'leader' as const, groupId: 'grp_paths' }
  const claimed = await asRun(() => claim({ db: api.db, environment: {}, isEnabled: true }, run))
  expect(claimed).not.toBeNull()
}

async function approve(id: string) {
  const person = await principalOf(api.db, api.tokens.approver)
  const said = { decision: 'approve' } as const
  const token = await mintedToken(api.db, person!, id, said)
  const at = { approvalId: id, incidentId: null, token, caller: person!.operatorId, via: 'api' }
  const decided = await decide(api.db, { ...said, ...at })
  expect(decided.outcome).toBe('recorded')
}

test('prints the number of files that a proposed call passes, safety/judge.ts among them', async () => {
  await openRun({ shard: 'db-osl-1' })
  const act = await acted('get_shard', { id: 'db-osl-1' })
  const files = await traceFiles(async () => expect(await act(null)).toMatchObject({ kind: 'next' }))
  report('a proposed call', files)
})

test('prints the number of files that a plan passes, from its proposal to its execution', async () => {
  await openRun({ host: 'host-osl-2' })
  const plan = { intent: 'recover', host_ids: ['host-osl-2'], use_rack_constraints: false }
  const proposed = await acted('schedule_ha_proposal', plan)
  const planned = await traceFiles(async () => expect(await proposed(null)).toMatchObject({ kind: 'next' }))
  const found = await api.db.selectFrom('proposal').select('id').executeTakeFirstOrThrow()
  const act = await acted('execute_migration', { proposal_id: found.id, reason: 'the host is dead' })
  let approvalId = ''
  const asked = await traceFiles(async () => {
    const answer = await act(null)
    expect(answer).toMatchObject({ kind: 'ask' })
    approvalId = (answer as { approvalId: string }).approvalId
  })
  await approve(approvalId)
  const ran = await traceFiles(async () => expect(await act(approvalId)).toMatchObject({ kind: 'verify' }))
  report('a plan, from its proposal to its execution', [...new Set([...planned, ...asked, ...ran])])
})

test('prints the number of files that a call to a device passes, with its agent', async () => {
  const { address, state } = await enrolledDevice('node-osl-1')
  const options = { manifestFile: join(state, 'manifest.json'), state, rootKeyFile: join(state, 'root-key') }
  agent = await startAgent({ ...options, address, tls: null, acceptLostJournal: false, version: 'test' })
  await api.post('/devices/node-osl-1/health')
  await openRun({ node: 'node-osl-1' })
  const act = await acted('fs_read', { on: 'node-osl-1', path: join(directory.path, 'files', 'small') })
  const files = await traceFiles(async () => expect(await act(null)).toMatchObject({ kind: 'next' }))
  report('a call to a device, with its agent', files)
})

async function enrolledDevice(id: string) {
  const [state, files] = [join(directory.path, 'state'), join(directory.path, 'files')]
  for (const each of [state, files]) mkdirSync(each)
  writeFileSync(join(files, 'small'), 'some lines\n')
  const address = { host: '127.0.0.1', port: await freePort() }
  const terms = { capabilities: [], roots: [{ path: files, writable: false }] }
  await api.put(`/devices/${id}`, { body: { url: `http://127.0.0.1:${address.port}`, mode: 'user', terms } })
  const { body: minted } = await api.post(`/devices/${id}/enrolment`)
  const given = await enrol(api, String(minted.token))
  writeFileSync(join(state, 'manifest.json'), JSON.stringify(given.body.manifest))
  writeFileSync(join(state, 'root-key'), String(given.body.root_public_key))
  return { address, state }
}

/** A figure to read, not a bound: `NAMES=1` names the files. */
function report(what: string, files: readonly string[]): void {
  console.info(`${what}: ${files.length} files${process.env.NAMES === '1' ? `\n${files.join('\n')}` : ''}`)
  expect(files).toContain('safety/judge.ts')
}
