import { expect, test } from '@jest/globals'
import { activeAlerts } from '../../db/alerts/active-alerts.ts'
import { declareResources } from '../../db/inventory/registry.ts'
import { systemScope } from '../../db/scope.ts'
import { importSource } from '../../domain/declared-resources.ts'
import { openedIncident } from '../support/database.ts'
import { runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()
const run = (...args: string[]) => runCli(args, api.as('viewer'))

const vm = { kind: 'vm' as const, id: 'vm-31' }
const node = { kind: 'node' as const, id: 'app-31', aliases: ['10.9.0.31'] }
const targets = { name: 'prometheus:main', hasAuthority: false }

test('alerts are listed by their resource, under any name that an authoritative source gives it', async () => {
  await api.db.transaction().execute(async (trx) => {
    await declareResources(trx, importSource, {
      resources: [vm, node, { kind: 'node', id: 'app-32' }],
      relations: [{ from: node, kind: 'same_as', to: vm }],
    })
    const target = { kind: 'target' as const, id: 'app-32:9100' }
    const relations = [{ from: target, kind: 'same_as' as const, to: vm }]
    await declareResources(trx, targets, { resources: [target], relations })
  })
  await openedIncident(api.db, { name: 'ByVm', labels: { vm: 'vm-31' } })
  await openedIncident(api.db, { name: 'ByAddress', labels: { instance: '10.9.0.31:9100' } })
  await openedIncident(api.db, { name: 'Other', labels: { instance: 'app-32:9100' } })
  const named = async (resource: string) =>
    (await activeAlerts(systemScope(api.db), resource)).map(({ name }) => name).sort()
  for (const resource of ['vm:vm-31', 'node:app-31', 'vm-31', 'app-31'])
    expect([resource, await named(resource)]).toEqual([resource, ['ByAddress', 'ByVm']])
  expect(await named('node:app-32')).toEqual(['Other'])
  expect(await named('nobody-knows-it')).toEqual([])

  const listed = await run('alerts', 'list', '--resource', 'node:app-31', '--status', 'firing')
  expect([listed.code, listed.stdout]).toEqual([0, expect.stringMatching(/firing .*alertmanager +inc_\w+ +By/)])
  expect(listed.stdout).not.toContain('Other')
  expect((await run('alerts', 'list', '--resource', 'app-31')).code).toBe(2)
})

test('an incident shows the group of its alert and its http links, and no other link', async () => {
  const id = await openedIncident(api.db, {
    groupKey: '{}:{alertname="\u001b[31mDisk"}',
    links: {
      generator: 'https://prometheus.example.com/graph',
      external: 'javascript:alert(1)',
      runbook: null,
      panel: 'https://grafana.example.com/d/abc?viewPanel=2',
    },
  })
  const { stdout } = await run('incidents', 'show', id)
  expect(stdout).toMatch(/group \{\}:\{alertname="/)
  expect(stdout).toContain('rule https://prometheus.example.com/graph')
  expect(stdout).toContain('panel https://grafana.example.com/d/abc?viewPanel=2')
  expect(stdout).not.toContain('javascript:')
  expect(stdout).not.toContain('\u001b[31m')
})

test('an end of an alert that proves nothing is marked in the list of alerts and at the incident, in 80 columns', async () => {
  const post = (status: string, more: object) => {
    const alert = {
      status,
      labels: { alertname: 'PausedRule' },
      startsAt: '2026-11-25T09:00:00Z',
      fingerprint: 'paused-1',
      ...more,
    }
    return api.post('/ingest/grafana', { body: { alerts: [alert] }, as: api.tokens.ingest })
  }
  const { body } = await post('firing', {})
  const id = (body as unknown as { alerts: { incidentId: string }[] }).alerts[0]!.incidentId
  await post('resolved', { annotations: { grafana_state_reason: 'Paused' } })
  const said = 'no end: Paused: the rule was paused'
  const listed = await runCli(['alerts', 'list', '--q', 'PausedRule'], api.as('viewer'))
  expect(listed.stdout).toMatch(/^unknown/m)
  expect(listed.stdout.replace(/\s+/g, ' ')).toContain(`(${said})`)
  const shown = await runCli(['incidents', 'show', id], { ...api.as('viewer'), COLUMNS: '80' })
  expect(shown.stdout).toContain(said)
  const [, alerts = ''] = /Alerts\n([\s\S]*?)\n\n/.exec(shown.stdout) ?? []
  for (const line of alerts.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
})
