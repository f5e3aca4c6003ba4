import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { freePort, temporaryDirectory } from '../support/directory.ts'
import { runCli, tokenFile } from '../support/run-cli.ts'
import { type ChatRequest, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { type RealSystemd, startSystemd, whyNoSystemd } from './real-servers.ts'

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
  agent = spawn(process.execPath, [entry, 'mesh', 'agent', '--state', state, '--listen', address, '--user-services'], {
    stdio: 'ignore',
    env: { PATH: process.env.PATH ?? '', HOME: dir.path, XDG_RUNTIME_DIR: systemd.runtime },
  })
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
    ok?: boolean
    data: { source: string; summary: { asked: object; templates: { template: string; count: number }[] } }
  }
  expect([ok, data.source, data.summary.asked]).toEqual([undefined, 'web-2', { labels: { unit: 'shop.service' } }])
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
          reason: 'It does not start.',
          category: 'no_tool',
          next_step: 'Look at its configuration.',
        },
      },
    ]
  }
  await raise('ShopDown')
  const { dryRun } = await approve('service_stop')
  expect(JSON.stringify(dryRun.details)).toMatch(/nothing else stops with the unit|stops with it: front\.service/)
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
