import { beforeAll, expect, test } from '@jest/globals'
import { syncInventory } from '../../../db/inventory/sync-inventory.ts'
import { enrolled, prepared, stopDevicesAtEnd, useMeshApi } from '../../support/mesh-api.ts'
import type { ScriptedDevice } from '../../support/scripted-device.ts'
import { scriptedPlatform } from '../../support/scripted-platform.ts'

/**
 * Guests that have odd names, move, or are exchanged for others, between what a person sees and
 * what is done.
 */

const api = useMeshApi()
stopDevicesAtEnd()
const { inventoryState } = scriptedPlatform()
const [first] = inventoryState.vms
const odd = ['vm-0101', 'vm-99', 'vm-1e3', 'vm-101 102', 'vm-101;id', 'vm-101\n', 'vm--1', 'vm-１０１', 'VM-101']
const placed = (hosts: Record<string, string>) => ({
  ...inventoryState,
  vms: [...inventoryState.vms, ...Object.entries(hosts).map(([id, host]) => ({ ...first!, id, host }))],
})
const everywhere = (host: string) => ({
  ...Object.fromEntries(odd.map((id) => [id, 'host-osl-1'])),
  'vm-101': host,
  web: 'host-osl-4',
})
const root_reads = [
  ['/usr/bin/id', '-u'],
  ['pct', 'exec', '101', '--', 'df'],
]
let engine: ScriptedDevice

beforeAll(async () => {
  await syncInventory(api.db, placed(everywhere('host-osl-1')))
  const terms = { capabilities: [], roots: [], root_reads }
  await enrolled(api, 'host-osl-1', { guests: 'pct', terms })
  await enrolled(api, 'host-osl-3', { guests: 'pct', terms })
  engine = await enrolled(api, 'host-osl-4', { guests: 'docker' })
})

const restart = { on: 'vm-101', argv: ['appctl', 'restart'], reason: 'because' }

test.each(odd)('%j is no number of a guest, and its host is not asked', async (on) => {
  await expect(prepared(api, 'exec', { on, argv: ['df'] })).rejects.toThrow()
})

test('a guest that moved to another host since the question is another state, and is asked about again', async () => {
  const before = await prepared(api, 'exec', restart)
  expect(before?.dryRun.details).toMatchObject({ device: 'host-osl-1', through: 'pct' })
  await syncInventory(api.db, placed(everywhere('host-osl-3')))
  const after = await prepared(api, 'exec', restart)
  expect(after?.dryRun.details).toMatchObject({ device: 'host-osl-3' })
  expect(after?.stateFingerprint).not.toBe(before?.stateFingerprint)
  await syncInventory(api.db, placed(everywhere('host-osl-1')))
  expect((await prepared(api, 'exec', restart))?.stateFingerprint).toBe(before?.stateFingerprint)
})

test('commands that root may run to read on the host are not allowed in its guests', async () => {
  const found = await prepared(api, 'exec', { on: 'vm-101', argv: ['sudo', '-n', '/usr/bin/id', '-u'] })
  expect(found).not.toHaveProperty('rootReads')
})

test('a command of root that enters a guest does not run unasked either', async () => {
  const found = await prepared(api, 'exec', {
    on: 'host-osl-1',
    argv: ['sudo', '-n', 'pct', 'exec', '101', '--', 'df'],
  })
  const { rootReads } = found as { rootReads?: string[][] }
  const { judgeArgv } = await import('../../../safety/command/judge.ts')
  const argv = ['sudo', '-n', 'pct', 'exec', '101', '--', 'df']
  expect(judgeArgv(argv, { knownHosts: new Set(), directory: '/', rootReads })).toMatchObject({ verdict: 'ask' })
})

test('words for a guest stay behind the end of options', async () => {
  const argv = ['--', '--version', '-i', '--user=0']
  const found = await prepared(api, 'exec', { on: 'vm-101', argv, reason: 'because' })
  expect(found?.dryRun.details).toMatchObject({ args: { argv: ['pct', 'exec', '101', '--', ...argv] } })
})

test('a guest that is a container is read before a person is asked, and another container is another state', async () => {
  const asked = async (id: string) => {
    engine.rehearsal = {
      told: [`container web (${id})`],
      untried: [],
      rests_on: id,
      tried: false,
      container: 'web',
    }
    return await prepared(api, 'exec', { on: 'web', argv: ['appctl', 'restart'], reason: 'because' })
  }
  const found = await asked('a')
  expect(engine.heard.at(-1)).toMatchObject({ capability: 'docker.container.exec', rehearse: true, grant: null })
  expect(found?.dryRun.details.rehearsal).toMatchObject({ told: ['container web (a)'] })
  expect((await asked('a'))?.stateFingerprint).toBe(found?.stateFingerprint)
  expect((await asked('b'))?.stateFingerprint).not.toBe(found?.stateFingerprint)
})
