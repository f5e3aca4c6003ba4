import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { whyUnnameable } from '../../domain/job.ts'
import { runCommand } from '../../effects/jobs/command.ts'
import { JobsFileError, parseJobs } from '../../effects/jobs/jobs.ts'
import { useApi } from '../api/api.ts'
import { scriptedPlatform } from '../api/scripted-platform.ts'
import { answerJson, type LocalServer, type Play, startLocalServer } from '../clients/local-server.ts'
import { eventually, temporaryDirectory } from '../support/directory.ts'

/** What AWX's and Rundeck's documentation say that they answer, as far as a job needs it. */

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
        return json(201, { job: job.id, id: job.id, status: 'pending', ignored_fields: {} })
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
        ...{ id: job.id, job_type: job.body.job_type, job_explanation: '' },
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

describe('jobs command', () => {
  const directory = temporaryDirectory()
  afterAll(directory.remove)
  const run = (argv: string[], more: { timeoutMs?: number; cwd?: string } = {}) =>
    runCommand({ argv, cwd: directory.path, env: { GIVEN: 'yes' }, timeoutMs: 600_000, ...more })
  /** The kernel takes a moment between a signal and the end. */
  const toEnd = (file: string) => {
    const pid = Number(readFileSync(join(directory.path, file), 'utf8'))
    return eventually(`process ${pid} to end`, () => {
      try {
        return /^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
      } catch {
        return true
      }
    })
  }

  test('a word is one word, whatever signs of a shell it holds', async () => {
    const { output } = await run(['printf', '[%s]', 'a b', '$(id)', '; rm -rf /'])
    expect(output).toBe('[a b][$(id)][; rm -rf /]')
  })

  test('a command gets what it was declared to get, and nothing else of this process', async () => {
    process.env.SECRET_OF_THE_API = 'hidden'
    const { output } = await run(['env'])
    delete process.env.SECRET_OF_THE_API
    expect(output).toContain('GIVEN=yes')
    expect(output).not.toContain('hidden')
  })

  test('at its deadline the whole group is killed, also what ignores the request to end', async () => {
    const script = 'trap "" TERM; (trap "" TERM; sleep 60) & echo $! > child; wait; sleep 60'
    const outcome = await run(['bash', '-c', script], { timeoutMs: 2_000 })
    expect(outcome).toMatchObject({ isOk: false, exitCode: null })
    expect(outcome.detail).toContain('stopped at its deadline')
    await toEnd('child')
  })

  test('what a command leaves running in its group ends with it, and does not hold its answer up', async () => {
    const outcome = await run(['bash', '-c', 'sleep 3600 & echo $! > left; echo done'])
    expect(outcome).toMatchObject({ isOk: true, output: 'done\n' })
    await toEnd('left')
  })

  test('of a long output the beginning and the end are kept, and a program that is not there is an outcome', async () => {
    const outcome = await run(['bash', '-c', 'echo first; head -c 300000 /dev/zero | tr "\\0" x; echo; echo last'])
    expect(outcome.isCut).toBe(true)
    expect(outcome.output).toMatch(/^first\n[\s\S]*left out[\s\S]*last\n$/)
    expect(outcome.output.length).toBeLessThan(70_000)
    expect(await run(['not-a-program'])).toMatchObject({
      isOk: false,
      detail: 'not-a-program could not be started (ENOENT)',
    })
  })
})

describe('jobs file', () => {
  const job = (more: string) => `
jobs:
  - name: converge-web
    about: Re-applies the web role
    resources: { kind: node, pattern: "web-.*" }
${more}`

  function faultsOf(text: string): string[] {
    try {
      parseJobs(text)
    } catch (error) {
      if (error instanceof JobsFileError) return error.faults
      throw error
    }
    return []
  }

  test('a file of jobs is YAML or JSON, with merged parts', () => {
    const [declared] = parseJobs(
      job(`    run: &playbook { command: [ansible-playbook, web.yml, --limit, "{id}"], cwd: /etc/ansible }
    check: { <<: *playbook, command: [ansible-playbook, web.yml, --check, --limit, "{id}"], noChanges: { exitCode: 0 } }`),
    )
    expect(declared).toMatchObject({ timeoutSeconds: 600, check: { cwd: '/etc/ansible', okExitCodes: [0] } })
    expect(parseJobs(JSON.stringify({ jobs: [declared] }))).toEqual([declared])
    expect(parseJobs('')).toEqual([])
  })

  test('every fault of the file is named at once, with its line', () => {
    const faults = faultsOf(`jobs:
  - name: Converge
    about: Re-applies the web role
    resources: { kind: nodes, ids: [web-1], pattern: "web-.*" }
    run:
      command: [ansible-playbook, "{hostname}"]
  - name: restart
    about: Restarts it
    resources: { kind: node, pattern: "web-.*" }
    run:
      http:
        url: https://jobs.example.com/restart
        headers: { Authorization: Bearer abcdef }
    timeout: 5
  - name: text
    about: Runs a text
    resources: { kind: node, ids: [web-1] }
    run: { command: [bash, -c, "echo {id}"] }
  - name: nothing
    about: Runs nothing
    resources: { kind: node, ids: [web-1] }
    run: {}`)
    expect(faults.map((fault) => fault.replace(/(line \d+: \S+) .*/, '$1'))).toEqual(
      expect.arrayContaining([
        'line 2: jobs.0.name:',
        'line 4: jobs.0.resources.kind:',
        'line 6: jobs.0.run.command.1:',
        'line 13: jobs.1.run.http.headers.Authorization:',
        'line 18: jobs.2.run.command:',
        'line 22: jobs.3.run:',
      ]),
    )
    expect(faults.join('\n')).toContain('write { from: file:/path }')
    expect(faults.join('\n')).not.toContain('abcdef')
  })

  test('a job for several that does not say which of them, two of one name, and a secret in an address are faults', () => {
    expect(faultsOf(job('    run: { command: [converge] }'))).toEqual([
      'line 6: jobs.0.run: names no resource: use {id} or {name}, or list one id',
    ])
    const one = job('    run: { command: [converge, "{id}"] }')
    expect(faultsOf(one + one.replace('\njobs:', ''))).toEqual(['line 7: jobs.1.name: converge-web is there twice'])
    const secret = job('    run: { http: { url: "https://x.example.com/{id}?token=abc" } }')
    expect(faultsOf(secret)[0]).toContain('holds a secret in the address')
    expect(faultsOf('jobs: [')[0]).toMatch(/^line 1: /)
  })

  test('a resource whose id would mean more than itself to a job is not named to it', () => {
    const [declared] = parseJobs(
      `jobs: [{ name: a, about: any host, resources: { kind: node, pattern: ".*" }, run: { command: [converge, "{id}"] } }]`,
    )
    const why = (id: string) => whyUnnameable(declared!, { kind: 'node', id, name: id })
    for (const id of ['web-1:all', 'web-1,db-1', '-e', 'a b', '!web', 'x@y', '{{x}}', 'a/../b'])
      expect(why(id)).toContain('characters')
    for (const id of ['all', 'ALL', 'localhost', 'ungrouped']) expect(why(id)).toContain('more than this one')
    expect(why('web-1.example.com')).toBeNull()
  })
})

describe('jobs remote', () => {
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
  async function run(job: string, key: string) {
    const { body } = await prepare(job)
    const { stateFingerprint } = body.preparation as unknown as { stateFingerprint: string }
    return await api.post(`/jobs/${job}/run`, {
      ...{ key, body: { kind: 'node', id: 'node-osl-2', reason: 'it has drifted' } },
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
      ...{ job_type: 'check', diff_mode: true, limit: 'node-osl-2', extra_vars: { reason: 'node' } },
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
    expect(body.detail).toContain('does not let a launch choose its job type and limit')
    expect(awx.jobs).toEqual([])
  })

  test('an AWX job that takes too long is asked to stop, and its end is what AWX says', async () => {
    endIn(4)
    const awx = scriptedAwx()
    server.play(awx.play)
    await prepare('awx')
    const { body } = await prepare('awx')
    expect(body.done).toBe(true)
    const fingerprint = (body.preparation as unknown as { stateFingerprint: string }).stateFingerprint
    awx.endsAfter = null
    const answer = await api.post('/jobs/awx/run', {
      ...{ key: 'awx-late', body: { kind: 'node', id: 'node-osl-2', reason: 'it has drifted' } },
      headers: { 'if-match': fingerprint },
    })
    expect([answer.status, answer.body.detail]).toEqual([
      502,
      expect.stringContaining('asked to stop after 4 s; AWX job 42 is canceled'),
    ])
  })

  test('an AWX that goes away while its job runs is asked by the number of the job; one that lost the launch cannot be', async () => {
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
    const answer = await api.post('/jobs/awx/run', { ...asked, key: 'awx-away' })
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
      key: 'awx-lost',
      headers: { 'if-match': again.stateFingerprint },
    })
    expect([lost.status, lost.body.code]).toEqual([504, 'EFFECT_INDETERMINATE'])
  })

  test('a job of Rundeck is run with its options by name, and a failed execution is a failure', async () => {
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

  test('any service gets one request with our key, and is asked where its answer says', async () => {
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
      'idempotency-key': expect.stringContaining('http-1'),
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
})
