import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll } from '@jest/globals'
import type { ApiOptions } from '../../../api/app.ts'
import { syncInventory } from '../../../db/inventory.ts'
import type { Mesh } from '../../../effects/devices/executor.ts'
import type { SigningKey } from '../../../mesh/sign.ts'
import { type TestApi, useApi } from '../../api/api.ts'
import { scriptedPlatform } from '../../api/scripted-platform.ts'
import { type ScriptedDevice, scriptedDevice } from './scripted-device.ts'

export function newKey(id: string): SigningKey {
  return { id, key: generateKeyPairSync('ed25519').privateKey }
}

export type MeshApi = TestApi & { mesh: Mesh; variables: Record<string, string> }

/** The API with a mesh of its own, over the inventory of the scripted platform. */
export function useMeshApi(options: Partial<ApiOptions> = {}): MeshApi {
  const variables: Record<string, string> = {}
  const mesh: Mesh = {
    keys: { root: newKey('root'), signing: newKey('k-first'), next: null },
    variable: (name) => variables[name],
  }
  const api = useApi(() => ({ mesh, ...options })) as MeshApi
  Object.assign(api, { mesh, variables })
  beforeAll(async () => {
    await syncInventory(api.db, scriptedPlatform().inventoryState)
  })
  return api
}

const started: ScriptedDevice[] = []

export type DeviceSettings = Record<string, unknown>

/** A device as an admin makes it known and a person on it enrols it. */
export async function enrolled(api: MeshApi, id: string, settings: DeviceSettings = {}): Promise<ScriptedDevice> {
  const device = await scriptedDevice(id)
  started.push(device)
  const body = {
    ...{ url: device.url, mode: 'all', terms: { capabilities: [], roots: [{ path: '/srv', writable: true }] } },
    ...settings,
  }
  const made = await api.put(`/devices/${id}`, { body })
  if (made.status !== 200) throw new Error(JSON.stringify(made.body))
  const { body: minted } = await api.post(`/devices/${id}/enrolment`)
  const answer = await enrol(api, String(minted.token))
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
  device.manifest = answer.body.manifest as never
  return device
}

/** What the device's own command does with its token. */
export async function enrol(api: MeshApi, token: string, door = 'enrolments') {
  const response = await api.api.app.request(`/mesh/${door}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

export function stopDevicesAtEnd(): void {
  afterAll(async () => {
    for (const device of started) await device.stop().catch(() => {})
  })
}
