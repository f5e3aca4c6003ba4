import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { closeConnections } from '../../../clients/http.ts'
import type { PlatformClient } from '../../../clients/platform.ts'
import { createProxmoxClient } from '../../../clients/proxmox/client.ts'
import type { EffectAnswer } from '../../../domain/platform.ts'
import { memoryJournal } from './journal.ts'
import { type ScriptedProxmox, startScriptedProxmox, token } from './scripted-proxmox.ts'

let pve: ScriptedProxmox
let journal: ReturnType<typeof memoryJournal>
let client: PlatformClient
const fresh = () => createProxmoxClient({ urls: [pve.server.url], token, allow: 'loopback', journal })

beforeEach(async () => {
  pve = await startScriptedProxmox()
  journal = memoryJournal()
  client = fresh()
})
afterEach(async () => {
  await closeConnections()
  await pve.close()
})

const move = { from: 'pve1', to: 'pve2' }

async function followed(answer: EffectAnswer): Promise<EffectAnswer> {
  let last: EffectAnswer | null = answer
  for (let look = 0; last?.status === 'running' && look < 20; look += 1) last = await client.effect(answer.key)
  if (!last) throw new Error('its key is not known')
  return last
}

test('a migration is sent once, and followed by its task to where the guest then runs', async () => {
  const answer = await client.migrateVm('vm-101', move, 'k1')
  expect(answer).toMatchObject({ key: 'k1', status: 'running', result: { vm: 'vm-101', from: 'pve1', to: 'pve2' } })
  expect(await followed(answer)).toMatchObject({ status: 'done', detail: 'vm-101 runs on pve2' })
  expect(pve.begun).toEqual([{ path: '/api2/json/nodes/pve1/qemu/101/migrate', form: { target: 'pve2', online: '1' } }])
  expect(pve.guest(101).node).toBe('pve2')

  const seen = pve.server.seen.length
  expect(await client.migrateVm('vm-101', move, 'k1')).toMatchObject({ status: 'done', detail: 'vm-101 runs on pve2' })
  expect(pve.server.seen.length).toBe(seen)
})
