import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { declareResources } from '../../db/inventory/registry.ts'
import { importSource } from '../../domain/declared-resources.ts'
import { runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()
const run = (args: string[], role: 'ingest' | 'viewer' = 'viewer') => runCli(args, api.as(role))

test('a change is reported from a file and listed, also for the resources that depend on the changed one', async () => {
  const resources = [
    { kind: 'node' as const, id: 'web-1' },
    { kind: 'service_unit' as const, id: 'nginx:web-1' },
  ]
  const relations = [
    {
      from: { kind: 'service_unit' as const, id: 'nginx:web-1' },
      kind: 'runs_on' as const,
      to: { kind: 'node' as const, id: 'web-1' },
    },
  ]
  await api.db.transaction().execute((trx) => declareResources(trx, importSource, { resources, relations }))
  const file = join(mkdtempSync(join(tmpdir(), 'nightshift-')), 'change.json')
  const at = new Date(Date.now() - 60_000).toISOString()
  const body = [
    { title: 'kernel \u001b[31m6.12', at, resources: 'node:web-1', author: 'anna' },
    { title: 'who knows', at, resources: ['web-9'] },
  ]
  writeFileSync(file, JSON.stringify(body))
  const reported = await run(['ingest', 'change', file], 'ingest')
  expect(reported.code).toBe(0)
  expect(reported.stdout).toMatch(/chg_\w+ +stored +node:web-1\n.*stored +\(none: web-9 is not known\)/)
  expect((await run(['ingest', 'change', file], 'ingest')).stdout).toContain('repeated')

  const near = await run(['changes', 'list', '--resource', 'service_unit:nginx:web-1'])
  expect([near.code, near.stdout]).toEqual([0, expect.stringMatching(/node:web-1 +kernel .*by anna/)])
  expect(near.stdout).not.toContain('\u001b[31m')
  expect(near.stdout).not.toContain('who knows')
  const unmatched = JSON.parse((await run(['changes', 'list', '--unmatched', '--json'])).stdout)
  expect(unmatched).toMatchObject([{ title: 'who knows', resource: null }])
  expect((await run(['changes', 'list', '--resource', 'web-1'])).code).toBe(2)
  expect((await run(['changes', 'list', '--window', '1h'])).code).toBe(2)
})
