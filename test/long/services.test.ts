import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { putSource } from '../../db/inventory/sources.ts'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { writeJobs } from '../../lab/jobs.ts'
import { findVictoriaLogs, missingServers } from '../../lab/monitoring.ts'
import type { MetricFault } from '../../lab/monitoring-rules.ts'
import { enrolLab } from '../../start/lab-devices.ts'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { runCli, tokenFile } from '../cli/run-cli.ts'
import { freePort, temporaryDirectory } from '../support/directory.ts'
import { type ChatRequest, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { type RealSystemd, startSystemd, whyNoSystemd } from './real-servers.ts'

describe('services', () => {
  // Three plain hosts, a real systemd behind the agent of one of them, and no platform.

  const why = whyNoSystemd()
  const when = why === null ? test : test.skip
  const dir = temporaryDirectory()
  const entry = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
  const blocker = join(dir.path, 'blocked')
  let systemd: RealSystemd
  let spine: Spine
  let model: ScriptedModel
  let agent: ChildProcess
  let says: (request: ChatRequest) => { tool: string; arguments: Record<string, unknown> }[] | string

  const asAdmin = () => ({ NIGHTSHIFT_URL: spine.url, NIGHTSHIFT_TOKEN_FILE: tokenFile(spine.tokens.admin) })

  beforeAll(async () => {
    if (why !== null) return
    systemd = await startSystemd()
    // It fails for as long as a file is in its way, as one whose configuration is wrong does.
    systemd.define(
      'shop.service',
      `[Unit]\nDescription=The shop\n[Service]\nExecStart=/bin/sh -c 'for order in 17 18 19; do echo "order $$order failed: pool exhausted"; done; echo open; test ! -e ${blocker} && exec sleep 100000'\n`,
    )
    systemd.define(
      'front.service',
      '[Unit]\nRequires=shop.service\nAfter=shop.service\n[Service]\nExecStart=sleep 100000\n',
    )
    systemd.systemctl('start', 'front.service')
    model = await scriptedModel((_turn, request) => says(request))
    spine = await startSpine({
      parts: ['api'],
      environment: { LLM_BASE_URL: model.url, LLM_MODEL: 'scripted', PLATFORM_URL: '', ...ensureMeshKeys(dir.path) },
    })
    const site = join(dir.path, 'site.yaml')
    writeFileSync(
      site,
      `groups:\n  - { id: web, region: oslo }\nnodes:\n${[1, 2, 3].map((n) => `  - { id: web-${n}, group: web, hostname: web-${n}.example.com, ip: 10.0.0.1${n} }\n`).join('')}`,
    )
    const imported = await runCli(['inventory', 'import', site, '--json'], asAdmin())
    if (imported.code !== 0) throw new Error(imported.stderr)
    const address = `127.0.0.1:${await freePort()}`
    const words = ['mesh', 'enroll', 'web-2', '--address', `http://${address}`, '--mode', 'user', '--service', 'shop']
    const made = await runCli([...words, '--json'], asAdmin())
    const { token, sudoers } = JSON.parse(made.stdout)
    expect(sudoers).toEqual([
      'nightshift-agent ALL=(root) NOPASSWD: /usr/bin/systemctl restart shop.service, /usr/bin/systemctl start shop.service, /usr/bin/systemctl stop shop.service',
    ])
    const state = join(dir.path, 'agent')
    mkdirSync(state, { recursive: true })
    await runCli(['mesh', 'agent', 'enroll', '--api', spine.url, '--token', token, '--state', state])
    agent = spawn(
      process.execPath,
      [entry, 'mesh', 'agent', '--state', state, '--listen', address, '--user-services'],
      {
        stdio: 'ignore',
        env: { PATH: process.env.PATH ?? '', HOME: dir.path, XDG_RUNTIME_DIR: systemd.runtime },
      },
    )
    await spine.until('the agent', async () => (await fetch(`http://${address}/health`)).ok)
    await spine.start('worker')
  })
  afterAll(async () => {
    agent?.kill('SIGKILL')
    await spine?.stop()
    await model?.stop()
    await systemd?.stop()
    dir.remove()
  })

  const reads = (request: ChatRequest) => JSON.stringify(request.messages)
  const idIn = (request: ChatRequest) => /inc_[0-9a-z]{26}/.exec(reads(request))?.[0] ?? ''
  const lastSeq = (request: ChatRequest) => Number(/"seq":(\d+)/.exec(request.messages.at(-1)?.content ?? '')?.[1])
  const call = (tool: string, more: object) => [{ tool, arguments: { on: 'web-2', unit: 'shop', ...more } }]

  async function raise(name: string): Promise<void> {
    const labels = { alertname: name, severity: 'critical', instance: 'web-2.example.com:9100', name: 'shop.service' }
    const annotations = { summary: 'shop.service has failed' }
    const body = { version: '4', alerts: [{ status: 'firing', labels, annotations }] }
    await spine.post('/ingest/alertmanager', body, { token: spine.tokens.ingest })
  }

  async function approve(tool: string) {
    const approval = await spine.until(`a question about ${tool}`, async () => {
      const asked = await spine.pendingApproval()
      return asked.tool === tool && asked
    })
    const as = { token: spine.tokens.approver }
    const { body } = await spine.post(`/approvals/${approval.id}/token`, { decision: 'approve' }, as)
    await spine.post(`/approvals/${approval.id}/decision`, { decision: 'approve', token: body.token }, as)
    return approval
  }

  when('what a service has logged is read out of the real journal by search_logs, as templates', async () => {
    let answer = ''
    let offered: string[] = []
    let turn = 0
    says = (request) => {
      turn += 1
      if (turn === 1) {
        offered = (request.tools ?? []).map((tool) => (tool as { function: { name: string } }).function.name)
        return call('search_logs', { window: '30m' })
      }
      answer = request.messages.at(-1)?.content ?? ''
      const said = { reason: 'The pool is exhausted.', category: 'no_tool', next_step: 'Give it a larger pool.' }
      return [{ tool: 'escalate_incident', arguments: { id: idIn(request), ...said } }]
    }
    await raise('ShopSlow')
    await spine.until('the end', async () => (await spine.incidents('?status=escalated'))[0])
    expect(offered).toContain('search_logs')
    const { ok, data } = JSON.parse(answer) as {
      ok: boolean
      data: { source: string; summary: { asked: object; templates: { template: string; count: number }[] } }
    }
    expect([ok, data.source, data.summary.asked]).toEqual([true, 'web-2', { labels: { unit: 'shop.service' } }])
    const failed = data.summary.templates.find(({ template }) => template.includes('pool exhausted'))
    expect(failed).toMatchObject({ count: 3, isNew: true, sample: expect.stringContaining('failed: pool exhausted') })
    expect(answer.length).toBeLessThan(3_000)
  })

  when(
    `an alert by instance leads to a service that has failed, and to its restart with a proof${why ? ` (${why})` : ''}`,
    async () => {
      systemd.systemctl('kill', '--signal=KILL', 'shop.service')
      await spine.until('the service to have failed', async () =>
        systemd.systemctl('show', 'shop.service', '--property=ActiveState').includes('failed'),
      )
      let turn = 0
      says = (request) => {
        turn += 1
        if (turn === 1) return call('service_status', {})
        if (turn === 2) return call('service_restart', { reason: 'It was killed, and nothing else is wrong.' })
        if (turn === 3) return call('service_status', {})
        const claim = {
          kind: 'is',
          text: 'shop.service is active',
          quotes: [{ seq: lastSeq(request), text: '"active":"active"' }],
        }
        return [
          {
            tool: 'resolve_incident',
            arguments: {
              id: idIn(request),
              outcome: 'repaired',
              resolution: 'shop.service is active.',
              claims: [claim],
            },
          },
        ]
      }
      await raise('SystemdUnitFailed')
      const { dryRun, risk } = await approve('service_restart')
      expect(risk).toBe('medium')
      expect(dryRun.proof).toEqual({ by: 'state', text: 'the service runs, and stays up' })
      const details = JSON.stringify(dryRun.details)
      for (const said of ['shop.service: The shop', 'now failed (failed)', 'signal', 'undo: none'])
        expect(details).toContain(said)
      const found = await spine.until('the end', async () =>
        (await spine.incidents('?type=systemd_unit_failed')).find(({ status }) => /resolved|escalated/.test(status)),
      )
      const events = await spine.events(found.id)
      const verified = events.find((event) => event.kind === 'verification')
      expect(verified?.metadata).toMatchObject({ outcome: 'held', observed: 'shop.service is active (running)' })
      expect(found).toMatchObject({ status: 'resolved', resource: { kind: 'node', id: 'web-2' } })
      expect(systemd.systemctl('is-active', 'shop.service').trim()).toBe('active')
    },
  )

  when('a service that does not stay up is a failure with its state, and nothing is called repaired', async () => {
    writeFileSync(blocker, '')
    let turn = 0
    let read = ''
    says = (request) => {
      turn += 1
      if (turn === 1) return call('service_status', {})
      if (turn === 2) return call('service_stop', { reason: 'It has to be stopped first.' })
      if (turn === 3) return call('service_start', { reason: 'Start it again.' })
      read = reads(request)
      return [
        {
          tool: 'escalate_incident',
          arguments: {
            id: idIn(request),
            ...{ reason: 'It does not start.', category: 'no_tool', next_step: 'Look at its configuration.' },
          },
        },
      ]
    }
    await raise('ShopDown')
    const { dryRun } = await approve('service_stop')
    expect(JSON.stringify(dryRun.details)).toMatch(/nothing else stops with it|stops with it: front\.service/)
    await approve('service_start')
    const incident = await spine.until('the escalation', async () =>
      (await spine.incidents('?status=escalated')).find(({ type }) => type === 'shop_down'),
    )
    expect(read).toContain('did not stay up')
    const outcomes = (await spine.events(incident.id)).flatMap((event) =>
      event.kind === 'verification' ? [`${event.metadata.tool} ${event.metadata.outcome}`] : [],
    )
    expect(outcomes).toEqual(['service_stop held', 'service_start not_held'])
    if (existsSync(blocker)) rmSync(blocker)
  })
})

describe('metric faults', () => {
  // Each on a node of its shard, all at once, so that the waits pass side by side: what alerts is what real rules of a real Prometheus say.
  // A converge repairs all nodes of a shard, so of two faults in a shard it repairs one at most.
  const faults = {
    slow_leak: { on: 'node-web-osl-1a', type: 'service_memory_high', ends: 'repaired' },
    error_rate: { on: 'node-web-osl-2a', type: 'high_error_rate', ends: 'repaired' },
    noisy_neighbour: { on: 'node-web-osl-1b', type: 'high_request_rate', ends: 'no_tool' },
    connection_pool: { on: 'node-web-ams-1a', type: 'too_many_connections', ends: 'repaired' },
    clock_skew: { on: 'node-web-osl-2b', type: 'node_clock_skew_detected', ends: 'repaired' },
    certificate_ending: { on: 'node-web-ams-2a', type: 'ssl_certificate_will_expire_soon', ends: 'repaired' },
    red_herring: { on: 'node-web-ams-2b', type: 'high_error_rate', ends: 'repaired' },
    missing_data: { on: 'node-web-ams-1b', type: 'target_down', ends: 'no_tool' },
    stale_lock: { on: 'node-web-osl-3a', type: 'high_error_rate', ends: 'repaired' },
  } as const satisfies Record<MetricFault, { on: string; type: string; ends: string }>
  const names = Object.keys(faults) as MetricFault[]

  const missing = missingServers()
  const suite = missing.length > 0 ? describe.skip : describe

  suite(`faults that only metrics tell${missing.length > 0 ? ` (needs ${missing.join(', ')})` : ''}`, () => {
    const keys = temporaryDirectory()
    const place = temporaryDirectory()
    let spine: Spine
    let isOver = false
    let approving: Promise<void>

    beforeAll(async () => {
      spine = await startSpine({
        parts: ['lab', 'runbook', 'api', 'worker'],
        environment: {
          LAB_WEB_SHARDS: '5',
          WATCHDOG_INTERVAL_SECONDS: '0.5',
          LAB_DIR: place.path,
          JOBS_FILE: writeJobs(place.path),
          VICTORIA_LOGS: process.env.VICTORIA_LOGS ?? '',
          ...ensureMeshKeys(keys.path),
        },
      })
      await enrolLab(spine.url, spine.tokens.admin, spine.lab)
      const { prometheusUrl, logsUrl } = await spine.lab.monitor()
      const source = {
        kind: 'prometheus',
        url: prometheusUrl,
        credential: null,
        caFile: null,
        options: {},
        timeoutSeconds: 10,
      }
      await putSource(spine.db, 'lab', source, 'anna')
      if (logsUrl) await putSource(spine.db, 'logs', { ...source, kind: 'victorialogs', url: logsUrl }, 'anna')
      for (const name of names) await spine.lab.break(name, faults[name].on)
      approving = approveAll()
    })
    afterAll(async () => {
      isOver = true
      await approving
      await spine?.stop()
      keys.remove()
      place.remove()
    })

    /** A person who says yes to everything: what is asked here is what the runbooks propose. */
    async function approveAll(): Promise<void> {
      const as = { token: spine.tokens.approver }
      const approvePending = async () => {
        const { items } = await spine.get<{ items: Approval[] }>('/approvals?status=pending')
        for (const { id } of items) {
          const { body } = await spine.post(`/approvals/${id}/token`, { decision: 'approve' }, as)
          await spine.post(`/approvals/${id}/decision`, { decision: 'approve', token: body.token }, as)
        }
      }
      while (!isOver) {
        // A request that a busy machine drops is made in the next round: what is still asked is still pending.
        await approvePending().catch((error) => console.warn(`approving: ${error}`))
        await new Promise((resolve) => setTimeout(resolve, 300))
      }
    }

    const nodeOf = (name: MetricFault): string => (name === 'connection_pool' ? 'node-db-osl-1a' : faults[name].on)
    const ended = (name: MetricFault): Promise<Incident> =>
      spine.until(`the incident of ${name}`, async () =>
        (await spine.incidents(`?type=${faults[name].type}`)).find(
          ({ resource, status }) => resource?.id === nodeOf(name) && ['resolved', 'escalated'].includes(status),
        ),
      )
    const reads = (events: IncidentEvent[]) =>
      events.flatMap((event) =>
        event.kind === 'tool_finished' && event.metadata.tool === 'query_metrics' ? [event.metadata] : [],
      )

    test.each(names)(
      '%s: its alert names the node, a metric tells the cause, and it ends as it should',
      async (name) => {
        const incident = await ended(name)
        const { category, outcome, attempt, resolution } = incident
        expect({ ends: category ?? outcome, attempt, resolution }).toEqual({
          ends: faults[name].ends,
          attempt: 1,
          resolution,
        })
        const answers = reads(await spine.events(incident.id))
        // Two questions at most before the cause is known, and one after a repair.
        expect(answers.length).toBeLessThanOrEqual(faults[name].ends === 'repaired' ? 3 : 2)
        for (const { result } of answers)
          expect(
            Buffer.byteLength(JSON.stringify((result as { data: { summary: unknown } }).data.summary)),
          ).toBeLessThanOrEqual(2_000)
        const { checks } = await spine.lab.oracle(name, faults[name].on)
        expect(checks.filter(({ ok }) => !ok)).toEqual([])
      },
    )

    test('a lock that a log alone tells of is removed by the job that the operator declared, with its check mode as card and proof', async () => {
      const events = await spine.events((await ended('stale_lock')).id)
      const finished = events.flatMap((event) => (event.kind === 'tool_finished' ? [event.metadata] : []))
      const log = finished.find(({ tool }) => tool === 'search_logs')
      expect(JSON.stringify(log?.result)).toContain('the index is locked: var/search.lock was left by reindex 4711')
      // Where logs are collected they are read there; else on the node that writes them.
      const source = findVictoriaLogs() ? 'logs' : faults.stale_lock.on
      expect(log?.result).toMatchObject({ data: { source } })
      const asked = events.find((event) => event.kind === 'approval_requested')
      expect(asked?.metadata).toMatchObject({ tool: 'run_job', risk: 'medium' })
      const { dryRun } = await spine.get<Approval>(`/approvals/${asked?.metadata.approvalId}`)
      expect(JSON.stringify(dryRun.details)).toMatch(/would remove .*search\.lock/)
      expect(events.find((event) => event.kind === 'verification')?.metadata).toMatchObject({ outcome: 'held' })
    })

    test('what is loud beside a cause is another incident, and is left alone', async () => {
      // On a busy machine the report gets its share of a core late.
      const loud = await spine.until('the incident about the CPU', async () =>
        (await spine.incidents('?type=process_cpu_high')).find(
          ({ resource }) => resource?.id === faults.red_herring.on,
        ),
      )
      const cause = await ended('red_herring')
      expect([loud.severity, loud.id === cause.id]).toEqual(['critical', false])
    })
  })
})
