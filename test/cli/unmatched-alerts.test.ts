import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { declareResources } from '../../db/inventory/registry.ts'
import { importSource } from '../../domain/declared-resources.ts'
import { runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()
const run = (args: string[], role: 'ingest' | 'viewer' | 'admin' = 'viewer') => runCli(args, api.as(role))

const alertOf = (name: string, labels: Record<string, string>) => ({
  status: 'firing',
  labels: { alertname: name, severity: 'warning', ...labels },
  annotations: {},
  startsAt: '2026-11-27T01:00:00Z',
  endsAt: '0001-01-01T00:00:00Z',
  generatorURL: '',
  fingerprint: name,
})

test('a label with names of known hosts is proposed with the command that maps it, and disappears when it is mapped', async () => {
  const hosts = ['esx-1', 'esx-2', 'esx-3'].map((id) => ({
    kind: 'host' as const,
    id,
    aliases: [`${id}.corp.example`],
  }))
  await api.db.transaction().execute((trx) => declareResources(trx, importSource, { resources: hosts, relations: [] }))
  const alerts = [
    alertOf('A', { appliance: 'esx-1.corp.example:443', rack: 'r1', team: 'blue' }),
    alertOf('B', { appliance: 'esx-2', rack: 'r2', team: 'blue' }),
    alertOf('C', { appliance: 'esx-3', peer_appliance: 'esx-1' }),
    alertOf('D', { appliance: 'somebody', rack: 'r2' }),
    alertOf('E', { instance: 'esx-1:9100' }),
  ]
  const file = join(mkdtempSync(join(tmpdir(), 'nightshift-')), 'alerts.json')
  const body = {
    version: '4',
    groupKey: 'g',
    status: 'firing',
    receiver: 'r',
    groupLabels: {},
    commonLabels: {},
    alerts,
  }
  writeFileSync(file, JSON.stringify(body))
  expect((await run(['ingest', 'test', file], 'ingest')).code).toBe(0)

  const { stdout, code } = await run(['alerts', 'list', '--unmatched'])
  expect(code).toBe(0)
  expect(stdout).toContain('appliance names 3 known hosts in 3 alerts (')
  expect(stdout).toContain("nightshift config set alert.resource_labels 'appliance -> host:*'")
  const { labels, alerts: listed } = JSON.parse((await run(['alerts', 'list', '--unmatched', '--json'])).stdout)
  expect(labels).toMatchObject([
    { label: 'appliance', kind: 'host', alerts: 3, things: 3, rule: 'appliance -> host:*' },
  ])
  expect(listed.map(({ name }: { name: string }) => name).sort()).toEqual(['A', 'B', 'C', 'D'])

  const [, value = ''] = /resource_labels '(.*)'/.exec(labels[0].command) ?? []
  expect((await run(['config', 'set', 'alert.resource_labels', value], 'admin')).code).toBe(0)
  expect(JSON.parse((await run(['alerts', 'list', '--unmatched', '--json'])).stdout).labels).toEqual([])
})
