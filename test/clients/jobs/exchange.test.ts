import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { parseJobs } from '../../../effects/jobs/jobs.ts'
import { approvedWrite } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { answerJson, type LocalServer, type Play, startLocalServer } from '../../support/local-server.ts'
import { scriptedPlatform } from '../../support/scripted-platform.ts'

type Job = { id: number; looks: number; body: Record<string, unknown>; canceled: boolean }

type ScriptedAwx = {
  play: Play
  jobs: Job[]
  launch: Record<string, unknown>
  stdout: string
  /** How often a job is looked at before it has ended; null: never. */
  endsAfter: number | null
  status: string
  /** The launch is carried out, and its answer never comes. */
  losesLaunch: boolean
  /**
   * What the launch answers besides, and of what type the job really is, where it is not the one
   * that was asked for.
   */
  answers: Record<string, unknown>
  really: string | null
}

function scriptedAwx(): ScriptedAwx {
  const awx: ScriptedAwx = {
    jobs: [],
    launch: {
      ask_job_type_on_launch: true,
      ask_limit_on_launch: true,
      ask_variables_on_launch: true,
      ask_diff_mode_on_launch: true,
      defaults: { job_type: 'run' },
    },
    stdout: 'node-osl-2 : ok=2 changed=1 unreachable=0 failed=0',
    endsAfter: 1,
    status: 'successful',
    losesLaunch: false,
    answers: {},
    really: null,
    play(response, { method, path, headers, body }) {
      const json = (status: number, answer: unknown) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      if (headers.authorization !== 'Bearer awx-secret')
        return json(401, { detail: 'Authentication credentials were not provided.' })
      if (path === '/api/v2/job_templates/7/launch/') {
        if (method === 'GET') return json(200, awx.launch)
        const job = { id: 40 + awx.jobs.length, looks: 0, body: JSON.parse(body), canceled: false }
        awx.jobs.push(job)
        if (awx.losesLaunch) return response.destroy()
        return json(201, { job: job.id, id: job.id, status: 'pending', ignored_fields: {}, ...awx.answers })
      }
      const [, id, rest] = /^\/api\/v2\/jobs\/(\d+)\/(.*)$/.exec(path) ?? []
      const job = awx.jobs.find((each) => String(each.id) === id)
      if (!job) return json(404, { detail: 'Not found.' })
      if (rest === 'stdout/?format=txt')
        return response.writeHead(200, { 'content-type': 'text/plain' }).end(awx.stdout)
      if (rest === 'cancel/') {
        job.canceled = true
        return response.writeHead(202).end()
      }
      job.looks += 1
      const isOver = awx.endsAfter !== null && job.looks > awx.endsAfter
      return json(200, {
        id: job.id,
        job_type: awx.really ?? job.body.job_type,
        job_explanation: '',
        status: job.canceled ? 'canceled' : isOver ? awx.status : 'running',
      })
    },
  }
  return awx
}

type ScriptedRundeck = {
  play: Play
  ran: { job: string; body: { options: Record<string, string> } }[]
  status: string
}

function scriptedRundeck(): ScriptedRundeck {
  const rundeck: ScriptedRundeck = {
    ran: [],
    status: 'succeeded',
    play(response, { method, path, headers, body }) {
      const json = (status: number, answer: unknown) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      if (headers['x-rundeck-auth-token'] !== 'rundeck-secret')
        return json(403, { error: true, errorCode: 'unauthorized' })
      const [, job] = /^\/api\/41\/job\/([\w-]+)\/run$/.exec(path) ?? []
      if (job && method === 'POST') {
        rundeck.ran.push({ job, body: JSON.parse(body) })
        return json(200, { id: rundeck.ran.length, status: 'running', href: `/api/41/execution/${rundeck.ran.length}` })
      }
      const [, id, output] = /^\/api\/41\/execution\/(\d+)(\/output)?$/.exec(path) ?? []
      if (!id || !rundeck.ran[Number(id) - 1])
        return json(404, { error: true, errorCode: 'api.error.item.doesnotexist' })
      if (output)
        return json(200, {
          id,
          completed: true,
          entries: [{ time: '01:02:03', level: 'NORMAL', log: `changed=${rundeck.status === 'succeeded' ? 1 : 0}` }],
        })
      return json(200, { id: Number(id), status: rundeck.status })
    },
  }
  return rundeck
}

process.env.NIGHTSHIFT_JOB_AWX = 'awx-secret'
process.env.NIGHTSHIFT_JOB_RUNDECK = 'rundeck-secret'
process.env.NIGHTSHIFT_JOB_HTTP = 'http-secret'

const api = useApi(() => ({ platform: scriptedPlatform() }))
let server: LocalServer
let patient: ReturnType<typeof parseJobs>

beforeAll(async () => {
  server = await startLocalServer()
  const declared = parseJobs(`
jobs:
  - name: awx
    about: The web role by AWX
    resources: { kind: node, pattern: node-osl-2 }
    run: &awx { awx: { url: ${server.url}, template: 7, token: env:NIGHTSHIFT_JOB_AWX, limit: "{id}", extraVars: { reason: "{kind}" } } }
    check: { <<: *awx, noChanges: { pattern: changed=0, unless: "changed=[1-9]" } }
  - name: rundeck
    about: The web role by Rundeck
    resources: { kind: node, pattern: node-osl-2 }
    run: { rundeck: { url: ${server.url}, job: 9b4f, token: env:NIGHTSHIFT_JOB_RUNDECK, options: { host: "{id}" } } }
    check: { rundeck: { url: ${server.url}, job: 9b4f, token: env:NIGHTSHIFT_JOB_RUNDECK, options: { host: "{id}", check: "yes" } } }
  - name: http
    about: Another service
    resources: { kind: node, pattern: node-osl-2 }
    run:
      http:
        url: ${server.url}/runs/{id}
        headers: { Authorization: { from: env:NIGHTSHIFT_JOB_HTTP, prefix: "Bearer " } }
        body: { host: "{id}" }
        poll: { url: "${server.url}/runs/by/{answer.run.id}", state: run.state, done: [ok], failed: [bad], everySeconds: 1 }
`)
  patient = declared
})
beforeEach(() => void Object.assign(api.api.deps.jobs, { declared: patient }))
afterAll(async () => await server.close())

/** Gives every job this long, where what a test is about is that it takes longer. */
const endIn = (timeoutSeconds: number) =>
  Object.assign(api.api.deps.jobs, { declared: patient.map((job) => ({ ...job, timeoutSeconds })) })

const about = 'kind=node&id=node-osl-2'
const prepare = async (job: string) => await api.get(`/jobs/${job}/preparation?${about}`)
const sends = new Map<string, ReturnType<typeof approvedWrite>>()
/** As a run sends it after a person approved it; the same name is the same call again. */
function sent(job: string, name: string) {
  const known = sends.get(name) ?? approvedWrite(api, 'run_job', { job, kind: 'node', id: 'node-osl-2' })
  sends.set(name, known)
  return known
}
async function run(job: string, key: string) {
  const { body } = await prepare(job)
  const { stateFingerprint } = body.preparation as unknown as { stateFingerprint: string }
  return await api.post(`/jobs/${job}/run`, {
    ...(await sent(job, key)),
    body: { kind: 'node', id: 'node-osl-2', reason: 'it has drifted' },
    headers: { 'if-match': stateFingerprint },
  })
}
/** What became of the last effect, asked after its process should have told. */
async function later() {
  const { rows } = await sql<{ key: string }>`
    update effect set started_at = nightshift_now() - interval '10 seconds' where status = 'running' returning key`.execute(
    api.owner,
  )
  return (await api.get(`/effects/${encodeURIComponent(rows[0]!.key)}`)).body
}

test('a job of AWX is checked with its check mode and run with its run mode, on this host alone', async () => {
  const awx = scriptedAwx()
  server.play(awx.play)
  const { body } = await prepare('awx')
  expect(JSON.stringify(body.preparation)).toContain('changed=1')
  expect(awx.jobs[0]!.body).toEqual({
    job_type: 'check',
    diff_mode: true,
    limit: 'node-osl-2',
    extra_vars: { reason: 'node' },
  })
  const answer = await run('awx', 'awx-1')
  expect([answer.status, answer.body.detail]).toEqual([200, 'awx: AWX job 42 is successful'])
  expect(awx.jobs[2]!.body).toMatchObject({ job_type: 'run', limit: 'node-osl-2' })
  expect(JSON.stringify([body, answer.body])).not.toContain('awx-secret')
})

test('a template of AWX that would ignore check mode or the limit is never launched', async () => {
  const awx = scriptedAwx()
  awx.launch = { ...awx.launch, ask_job_type_on_launch: false, ask_limit_on_launch: false }
  server.play(awx.play)
  const { status, body } = await prepare('awx')
  expect([status, body.code]).toEqual([409, 'CHECK_FAILED'])
  expect(body.detail).toContain('does not let a launch set its job type and limit')
  expect(awx.jobs).toEqual([])
})

test.each([
  ['is a run', { job_type: 'run' }, 'the type is run, not check'],
  ['says no type, and is one', { job_type: undefined }, 'the type is run, not check'],
  ['ignores the limit', { ignored_fields: { limit: 'node-osl-2' } }, 'the template ignores limit'],
  ['ignores the type', { ignored_fields: { job_type: 'check' } }, 'the template ignores job_type'],
  ['has other hosts', { limit: 'all' }, 'the limit differs from the requested hosts'],
])(
  'a check of AWX that %s because its template changed meanwhile is stopped, refused and logged in the audit',
  async (_, answer, why) => {
    const awx = Object.assign(scriptedAwx(), { answers: answer, really: 'run' })
    server.play(awx.play)
    const { body } = await prepare('awx')
    expect(body).toMatchObject({ code: 'CHECK_FAILED', detail: expect.stringContaining(why) })
    expect(awx.jobs.at(-1)).toMatchObject({ canceled: true })
    const { items } = (await api.get('/audit?what=security.job_not_a_check')).body as unknown as { items: unknown[] }
    expect(items[0]).toMatchObject({ subject: 'awx node:node-osl-2', detail: expect.stringContaining(why) })
  },
)

test('an AWX job that exceeds its time limit is asked to stop, and AWX reports its end', async () => {
  endIn(4)
  const awx = scriptedAwx()
  server.play(awx.play)
  await prepare('awx')
  const { body } = await prepare('awx')
  expect(body.done).toBe(true)
  const fingerprint = (body.preparation as unknown as { stateFingerprint: string }).stateFingerprint
  awx.endsAfter = null
  const answer = await api.post('/jobs/awx/run', {
    ...(await sent('awx', 'awx-late')),
    body: { kind: 'node', id: 'node-osl-2', reason: 'it has drifted' },
    headers: { 'if-match': fingerprint },
  })
  expect([answer.status, answer.body.detail]).toEqual([
    502,
    expect.stringContaining('asked to stop after 4 s; AWX job 42 is canceled'),
  ])
})

test('an AWX that goes away during its job is asked by the number of the job, and a lost launch cannot be asked for', async () => {
  endIn(4)
  const awx = scriptedAwx()
  server.play(awx.play)
  const { body } = await prepare('awx')
  const headers = { 'if-match': (body.preparation as unknown as { stateFingerprint: string }).stateFingerprint }
  const asked = { body: { kind: 'node', id: 'node-osl-2', reason: 'it has drifted' }, headers }
  // Carried out, but nothing answers after the launch.
  server.play((response, seen, request) =>
    seen.path.startsWith('/api/v2/jobs/') ? response.destroy() : awx.play(response, seen, request),
  )
  const answer = await api.post('/jobs/awx/run', { ...asked, ...(await sent('awx', 'awx-away')) })
  expect([answer.status, answer.body.code]).toEqual([504, 'EFFECT_RUNNING'])
  server.play(awx.play)
  awx.endsAfter = 0
  expect(await later()).toMatchObject({ status: 'done', detail: 'awx: AWX job 41 is successful' })

  awx.losesLaunch = false
  awx.endsAfter = 1
  const again = (await prepare('awx')).body.preparation as unknown as { stateFingerprint: string }
  awx.losesLaunch = true
  const lost = await api.post('/jobs/awx/run', {
    ...asked,
    ...(await sent('awx', 'awx-lost')),
    headers: { 'if-match': again.stateFingerprint },
  })
  expect([lost.status, lost.body.code]).toEqual([504, 'EFFECT_INDETERMINATE'])
})

test('a job of Rundeck runs with its options by name, and a failed execution is a failure', async () => {
  const rundeck = scriptedRundeck()
  server.play(rundeck.play)
  const answer = await run('rundeck', 'rundeck-1')
  expect([answer.status, answer.body.detail]).toEqual([200, 'rundeck: Rundeck execution 2 is succeeded'])
  expect(rundeck.ran.map(({ job, body }) => [job, body.options])).toEqual([
    ['9b4f', { host: 'node-osl-2', check: 'yes' }],
    ['9b4f', { host: 'node-osl-2' }],
  ])
  rundeck.status = 'failed'
  expect((await prepare('rundeck')).body.code).toBe('CHECK_FAILED')
})

test('any service gets one request with our key, and is polled at the address in its answer', async () => {
  let polls = 0
  server.play((response, seen, request) => {
    if (seen.method === 'POST') return answerJson(202, { run: { id: 'r-1' } })(response, seen, request)
    polls += 1
    return answerJson(200, { run: { state: polls > 1 ? 'ok' : 'busy' } })(response, seen, request)
  })
  const from = server.seen.length
  const answer = await run('http', 'http-1')
  expect([answer.status, answer.body.exit_code]).toEqual([200, 0])
  const [posted, polled] = server.seen.slice(from)
  expect(posted).toMatchObject({ path: '/runs/node-osl-2', body: '{"host":"node-osl-2"}' })
  expect(posted!.headers).toMatchObject({
    authorization: 'Bearer http-secret',
    'idempotency-key': (await sent('http', 'http-1')).key,
  })
  expect(polled!.path).toBe('/runs/by/r-1')
  server.play(answerJson(200, { run: { id: '../admin' } }))
  const odd = await run('http', 'http-2')
  expect([odd.status, odd.body.code]).toEqual([504, 'EFFECT_INDETERMINATE'])
  server.play(answerJson(400, { error: 'http-secret is no token' }))
  const refused = await run('http', 'http-3')
  expect([refused.status, refused.body.code]).toEqual([502, 'EFFECT_FAILED'])
  expect(JSON.stringify(refused.body)).not.toContain('http-secret')
})
