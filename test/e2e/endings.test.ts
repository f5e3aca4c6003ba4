import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import type { FaultName } from '../../lab/state.ts'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { unfoldNames } from '../../tools/registry.ts'
import { runCli, tokenFile } from '../cli/run-cli.ts'
import { freePort, temporaryDirectory } from '../support/directory.ts'
import { type ChatRequest, type Line, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'

describe('endings', () => {
  describe('endings', () => {
    let model: ScriptedModel
    let spine: Spine
    let lines: ((request: ChatRequest) => Line | Promise<Line>)[] = []
    let raised = 0

    beforeAll(async () => {
      model = await scriptedModel((_turn, request) => {
        const line = lines.length > 1 ? lines.shift() : lines[0]
        return line?.(request) ?? ''
      })
      spine = await startSpine({
        parts: ['api', 'worker'],
        environment: { LLM_BASE_URL: model.url, LLM_MODEL: 'scripted', WATCHDOG_INTERVAL_SECONDS: '0.5' },
      })
    })
    afterAll(async () => {
      await spine?.stop()
      await model?.stop()
    })
    beforeEach(async () => {
      model.requests.length = 0
      await sql`delete from platform_config`.execute(spine.db)
      await sql`insert into platform_config (key, value) values ('alert.quiet', '4')`.execute(spine.db)
    })

    const seqOf = (request: ChatRequest) => Number(/"seq":(\d+)/.exec(request.messages.at(-1)?.content ?? '')?.[1])
    const idOf = (request: ChatRequest) => /inc_[0-9a-z]{26}/.exec(JSON.stringify(request.messages))?.[0] ?? ''
    const look = () => [{ tool: 'find_resource', arguments: { text: 'backup' } }]
    const resolve = (outcome: string) => (request: ChatRequest) => [
      {
        tool: 'resolve_incident',
        arguments: {
          ...{ id: idOf(request), resolution: 'Nothing was found.', outcome },
          claims: [{ kind: 'absent', text: 'Nothing was found.', quotes: [{ seq: seqOf(request), text: '' }] }],
        },
      },
    ]
    const handOver = (request: ChatRequest) => [
      {
        tool: 'escalate_incident',
        arguments: {
          ...{ id: idOf(request), reason: 'Nothing was found and the alert fires on.', category: 'no_fault_found' },
          next_step: 'Look at the alert rule.',
        },
      },
    ]

    async function alert(name: string, status: 'firing' | 'resolved'): Promise<void> {
      const body = {
        version: '4',
        status,
        alerts: [
          { status, labels: { alertname: name, severity: 'warning' }, annotations: { summary: `${name} happened` } },
        ],
      }
      await spine.post('/ingest/alertmanager', body, { token: spine.tokens.ingest })
    }

    /** A type of its own, so that no test waits for the group of another. */
    function aName(): string {
      raised += 1
      return `ending_${raised}`
    }

    const closed = (name: string) => spine.incident(name, 'resolved|escalated')
    const codes = (events: IncidentEvent[]) =>
      events.flatMap((event) => (event.kind === 'call_judged' ? [event.metadata.code] : []))

    test('a model that ends a firing incident after one look as no fault is refused, and people get it', async () => {
      const name = aName()
      lines = [look, resolve('no_fault'), handOver]
      await alert(name, 'firing')
      const incident = await closed(name)
      const events = await spine.events(incident.id)
      expect(codes(events)).toEqual(['READ', 'STILL_FIRING', 'TERMINAL'])
      expect(incident).toMatchObject({ status: 'escalated', category: 'no_fault_found', alerts: { firing: 1 } })
      const escalated = events.find(({ kind }) => kind === 'escalated')
      expect(escalated?.kind === 'escalated' && escalated.metadata.report).toMatchObject({
        name: `${name} happened`,
        nextStep: 'Look at the alert rule.',
        changed: [],
      })
    })

    /** The model looks, and says that it is over only after its alert ended: the ending is kept. */
    async function keptEnding(name: string, quietSeconds: number): Promise<Incident> {
      await sql`update platform_config set value = ${String(quietSeconds)} where key = 'alert.quiet'`.execute(spine.db)
      const over = Promise.withResolvers<void>()
      lines = [
        look,
        async (request) => {
          await over.promise
          return resolve('self_resolved')(request)
        },
        handOver,
      ]
      await alert(name, 'firing')
      await spine.until('its second turn', async () => model.requests.length === 2)
      await alert(name, 'resolved')
      over.resolve()
      return await spine.until('the ending to be kept', async () => {
        const incident = (await spine.incidents(`?type=${name}`))[0]
        const events = incident ? await spine.events(incident.id) : []
        return events.some((event) => event.kind === 'noted' && event.metadata.code === 'ending_kept') && incident
      })
    }

    test('an ending that comes a moment after the alert ended is kept, and closes in its own words when it stays quiet', async () => {
      const name = aName()
      const { id, status } = await keptEnding(name, 4)
      expect(status).toBe('investigating')
      const incident = await closed(name)
      expect(incident).toMatchObject({
        id,
        status: 'resolved',
        outcome: 'self_resolved',
        resolution: 'Nothing was found.',
      })
      expect(codes(await spine.events(id))).toEqual(['READ', 'TERMINAL'])
      expect(model.requests).toHaveLength(2)
    })

    test('a kept ending whose alert fires again is refused, and the run goes on with what fires', async () => {
      const name = aName()
      const { id } = await keptEnding(name, 3)
      await alert(name, 'firing')
      const incident = await closed(name)
      expect(incident).toMatchObject({ id, status: 'escalated', category: 'no_fault_found' })
      expect(codes(await spine.events(id))).toEqual(['READ', 'STILL_FIRING', 'TERMINAL'])
    })

    test('a person who takes a running incident ends its attempt, and it is theirs', async () => {
      const name = aName()
      // A model that never answers: what it would have said is not awaited.
      lines = [() => new Promise<Line>(() => {})]
      await alert(name, 'firing')
      const { id } = await spine.incident(name, 'investigating')
      await spine.until('the model to be asked', async () => model.requests.length > 0)
      await spine.post(`/incidents/${id}/take`, {})
      const taken = await spine.until('the hand-over', async () => {
        const incident = await spine.get<Incident>(`/incidents/${id}`)
        return incident.status === 'escalated' && incident
      })
      expect(taken).toMatchObject({ owner: { name: 'admin' }, attempt: 1 })
      await alert(name, 'resolved')
      await alert(name, 'firing')
      expect(await spine.get<Incident>(`/incidents/${id}`)).toMatchObject({
        status: 'escalated',
        attempt: 1,
        reopened: 0,
      })
      const given = await spine.post(`/incidents/${id}/give-back`, {})
      expect(given.body).toMatchObject({ status: 'escalated', owner: null })
    })

    test('what is stored of all this holds against the log', async () => {
      expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [], nextCursor: null })
      expect(await spine.get('/audit/verify')).toMatchObject({ ok: true })
    })
  })

  describe('honest', () => {
    let spine: Spine

    beforeAll(async () => {
      spine = await startSpine({
        parts: ['lab', 'runbook', 'api', 'worker'],
        environment: { AGENT_MAX_CONCURRENT: '10', LAB_WEB_SHARDS: '4' },
      })
    })
    afterAll(async () => {
      await spine?.stop()
    })

    const scenarios: { fault: FaultName; target: string; type: string; ends: 'resolved' | 'escalated' }[] = [
      { fault: 'replication_lag', target: 'db-osl-1', type: 'replication_lag', ends: 'resolved' },
      { fault: 'disk_pressure', target: 'web-osl-1', type: 'disk_pressure', ends: 'resolved' },
      { fault: 'service_down', target: 'web-ams-1', type: 'service_down', ends: 'resolved' },
      { fault: 'config_drift', target: 'web-osl-2', type: 'config_drift', ends: 'resolved' },
      { fault: 'host_down', target: 'host-osl-1', type: 'host_down', ends: 'escalated' },
    ]

    test('an honest run of every lab scenario is never refused, never corrected, and asks about no look', async () => {
      for (const { fault, target } of scenarios) await spine.lab.break(fault, target)
      const approval = await spine.pendingApproval()
      expect(approval.tool).toBe('execute_migration')
      const { body } = await spine.post(
        `/approvals/${approval.id}/token`,
        { decision: 'approve' },
        { token: spine.tokens.approver },
      )
      await spine.post(
        `/approvals/${approval.id}/decision`,
        { decision: 'approve', token: body.token },
        { token: spine.tokens.approver },
      )
      const nagged: string[] = []
      for (const { fault, target, type, ends } of scenarios) {
        const incident = await spine.incident(type, ends)
        // Started elsewhere, its VMs are well again; the host itself is as dead as before.
        if (type === 'host_down') expect(incident.category).toBe('mitigated')
        for (const event of await spine.events(incident.id)) {
          if (event.kind === 'correction_sent') nagged.push(`${type}: ${event.metadata.code}`)
          if (event.kind !== 'call_judged') continue
          const { verdict, code, effect, tool } = event.metadata
          if (verdict === 'refuse' || (verdict === 'ask' && effect !== 'write')) nagged.push(`${type}: ${tool} ${code}`)
        }
        expect([fault, await spine.lab.oracle(fault as never, target)]).toMatchObject([fault, { healthy: true }])
      }
      expect(nagged).toEqual([])
    })
  })
})

describe('device write', () => {
  const dir = temporaryDirectory()
  const root = join(dir.path, 'srv')
  const config = join(root, 'app.conf')
  const state = join(dir.path, 'agent')
  const entry = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
  const slowly = `for i in 1 2 3 4; do echo "step $i" | tee -a ${join(root, 'steps')}; sleep 0.7; done`
  const script = join(root, 'once.sh')
  const marks = join(root, 'marks')
  let spine: Spine
  let model: ScriptedModel
  let agent: ChildProcess
  let incidentId = ''
  let node = ''

  /** What a careful model says, but for one order that it should not have obeyed. */
  const lines = (on: string) => [
    { tool: 'get_node', arguments: { id: on } },
    { tool: 'fs_read', arguments: { on, path: config } },
    { tool: 'exec', arguments: { on, argv: ['cat', config] } },
    { tool: 'exec', arguments: { on, argv: ['rm', '-rf', '/'], reason: 'because' } },
    { tool: 'fs_write', arguments: { on, path: config, content: 'port = 80\n', reason: 'The port is a letter.' } },
    { tool: 'shell_eval', arguments: { on, command: slowly, reason: 'Warm it up step by step.' } },
    { tool: 'exec', arguments: { on, argv: [script], reason: 'Then once more, in one go.' } },
  ]

  beforeAll(async () => {
    mkdirSync(root)
    writeFileSync(config, 'port = 8O\n')
    writeFileSync(
      script,
      `#!/bin/sh\necho done >> ${marks}\nsleep 4\necho finished\necho nothing to do >&2\nexit 7\n`,
      {
        mode: 0o755,
      },
    )
    model = await scriptedModel((turn) => {
      const line = lines(node)[turn - 1]
      return line ? [line] : 'It is repaired.'
    })
    spine = await startSpine({
      parts: ['lab', 'api'],
      environment: { LLM_BASE_URL: model.url, LLM_MODEL: 'scripted', ...ensureMeshKeys(dir.path) },
    })
    node = await spine.until('the inventory', async () => {
      const found = await spine.get<{ items: { id: string }[] }>('/resources?q=web-osl&kind=node')
      return found.items[0]?.id
    })
    const address = `127.0.0.1:${await freePort()}`
    const made = await runCli(
      ['mesh', 'enroll', node, '--address', `http://${address}`, '--mode', 'user', '--root', `${root}:rw`, '--json'],
      asAdmin(),
    )
    const { token } = JSON.parse(made.stdout)
    await runCli(['mesh', 'agent', 'enroll', '--api', spine.url, '--token', token, '--state', state])
    agent = spawn(process.execPath, [entry, 'mesh', 'agent', '--state', state, '--listen', address], {
      stdio: 'ignore',
    })
    await spine.until('the agent', async () => (await fetch(`http://${address}/health`)).ok)
    await spine.start('worker')
  })
  afterAll(async () => {
    agent?.kill('SIGKILL')
    await spine?.stop()
    await model?.stop()
    dir.remove()
  })

  const asAdmin = () => ({ NIGHTSHIFT_URL: spine.url, NIGHTSHIFT_TOKEN_FILE: tokenFile(spine.tokens.admin) })

  const results = async (tool: string) =>
    (await spine.events(incidentId)).flatMap((event) =>
      event.kind === 'tool_finished' && event.metadata.tool === tool ? [event.metadata.result] : [],
    )

  async function approve(tool: string): Promise<void> {
    const approval = await spine.until(`a question about ${tool}`, async () => {
      const asked = await spine.pendingApproval()
      return asked.tool === tool && asked
    })
    const as = { token: spine.tokens.approver }
    const { body } = await spine.post(`/approvals/${approval.id}/token`, { decision: 'approve' }, as)
    await spine.post(`/approvals/${approval.id}/decision`, { decision: 'approve', token: body.token }, as)
  }

  async function verification(tool: string) {
    const { metadata } = await spine.until(`the verification of ${tool}`, async () =>
      (await spine.events(incidentId)).find(
        (event) => event.kind === 'verification' && event.metadata.tool === tool && event.metadata.outcome !== 'open',
      ),
    )
    return metadata
  }

  test('a model reads a file on a device unasked, and is asked about with a rehearsal before it writes one', async () => {
    const answer = await spine.post('/agent', { question: 'Why does the web shard not answer?' })
    incidentId = String(answer.body.incidentId ?? answer.body.id)
    const approval = await spine.pendingApproval(120_000)
    expect(approval).toMatchObject({ tool: 'fs_write', risk: 'medium', required: 1 })
    expect(approval.dryRun).toMatchObject({ possible: true, summary: expect.stringContaining(config) })
    expect(approval.dryRun.proof).toEqual({ by: 'state', text: 'the file holds exactly what was written' })
    expect(JSON.stringify(approval.dryRun.details)).toContain('-port = 8O')
    expect(readFileSync(config, 'utf8')).toBe('port = 8O\n')
    expect(await results('fs_read')).toMatchObject([{ ok: true, data: { content: 'port = 8O\n' } }])
    expect(await results('exec')).toMatchObject([{ ok: true, data: { stdout: 'port = 8O\n', exit_code: 0 } }])
    const judged = (await spine.events(incidentId)).flatMap((event) =>
      event.kind === 'call_judged' ? [`${event.metadata.tool} ${event.metadata.code}`] : [],
    )
    expect(judged).toEqual([
      ...['get_node READ', 'fs_read READ', 'exec READ_COMMAND', 'exec FORBIDDEN_COMMAND', 'fs_write RISK_MEDIUM'],
    ])
  })

  test('approved, it is written once, verified on the device, and both audits agree', async () => {
    await approve('fs_write')
    expect(await verification('fs_write')).toMatchObject({
      outcome: 'held',
      observed: 'the file holds what was written',
    })
    expect(readFileSync(config, 'utf8')).toBe('port = 80\n')
    expect(await results('fs_write')).toMatchObject([
      {
        ok: true,
        data: { approval_status: 'granted', audit_hash: expect.any(String), previous_version: expect.anything() },
      },
    ])
  })

  test('an approved command is followed line by line and done once, and that it ended with 0 proves nothing', async () => {
    await approve('shell_eval')
    const [result] = await spine.until('the result', async () => {
      const found = await results('shell_eval')
      return found.length > 0 && found
    })
    expect(result).toMatchObject({ ok: true, data: { exit_code: 0, stdout: 'step 1\nstep 2\nstep 3\nstep 4\n' } })
    expect(readFileSync(join(root, 'steps'), 'utf8')).toBe('step 1\nstep 2\nstep 3\nstep 4\n')
    const shown = (await spine.events(incidentId)).flatMap((event) =>
      event.kind === 'tool_output' ? event.metadata.lines : [],
    )
    expect(shown).toEqual(['step 1', 'step 2', 'step 3', 'step 4'])
    expect(await verification('shell_eval')).toMatchObject({
      ...{ outcome: 'unproven', postcondition: '' },
      observed: expect.stringContaining('nothing proves that it worked'),
    })
    const audit = await runCli(['mesh', 'audit', 'verify', node, '--journal', state], asAdmin())
    expect([audit.code, audit.stdout]).toEqual([0, expect.stringContaining('agree')])
  })

  test('the API is killed while a device works: its successor asks the device, nothing is done twice, and a failure is one', async () => {
    await approve('exec')
    await spine.until('it to begin', async () => existsSync(marks))
    await spine.kill('api')
    await spine.start('api')
    const done = await spine.until('the result', async () =>
      (await results('exec')).find((result) => JSON.stringify(result.data ?? null).includes('finished')),
    )
    expect(done).toMatchObject({ ok: false, data: { approval_status: 'granted', exit_code: 7, stdout: 'finished\n' } })
    expect(await verification('exec')).toMatchObject({
      outcome: 'not_held',
      observed: 'not verified: exit code 7: nothing to do',
    })
    expect(readFileSync(marks, 'utf8')).toBe('done\n')
  })

  test('what the model was offered are the tools that the device has', async () => {
    const tools = (model.requests[0]?.tools ?? []) as { function: { name: string; description: string } }[]
    const names = tools.map((tool) => tool.function.name)
    expect(names).toEqual(expect.arrayContaining(['exec', 'search_logs', 'more_tools']))
    const told = tools.find((tool) => tool.function.name === 'more_tools')?.function.description ?? ''
    const more = unfoldNames(/There are: (.*)\.$/.exec(told)?.[1]?.split(', ') ?? [])
    for (const rare of ['shell_eval', 'fs_write', 'fs_read', 'proc_list']) expect(more).toContain(rare)
    for (const privileged of ['pkg_install', 'proc_kill', 'git_push'])
      expect([...names, more].join()).not.toContain(privileged)
    for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
  })
})
