import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { capabilityAnswer } from '../../domain/mesh.ts'
import { issueManifest, issueRequest, publicHalf } from '../../mesh/sign.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type RunningLab, runLab } from '../support/running-lab.ts'

const key = (id: string) => ({ id, key: generateKeyPairSync('ed25519').privateKey })
const [root, signing] = [key('root'), key('signing')]
const directory = temporaryDirectory()
let lab: RunningLab
let url: string

/** The control plane's door for enrolment, with one node's manifest behind it. */
const controlPlane = createServer(async (request, response) => {
  let text = ''
  for await (const chunk of request) text += chunk
  const { token } = JSON.parse(text) as { token: string }
  const device = lab && (await lab.control.devices()).find(({ id }) => token === `token-of-${id}`)
  if (!device || request.url !== '/mesh/enrolments') return void response.writeHead(403).end('no such token')
  const subject = {
    device: device.id,
    mode: 'user' as const,
    days: 1,
    terms: {
      capabilities: [],
      roots: [{ path: device.root, writable: true }],
      auto_approve: [],
      git_hosts: [],
      checks: [],
      limits: { output_bytes: 256_000, timeout_seconds: 20, cpu_seconds: 20, memory_mib: 512, concurrent: 4 },
    },
    keys: [{ id: signing.id, publicKey: publicHalf(signing), notAfter: null }],
  }
  response.writeHead(201, { 'content-type': 'application/json' })
  response.end(
    JSON.stringify({ device: device.id, root_public_key: publicHalf(root), manifest: issueManifest(subject, root) }),
  )
})

beforeAll(async () => {
  controlPlane.listen(0, '127.0.0.1')
  await once(controlPlane, 'listening')
  url = `http://127.0.0.1:${(controlPlane.address() as AddressInfo).port}`
  lab = await runLab(directory.path, { webShards: 1 })
})
afterAll(async () => {
  await lab?.stop()
  controlPlane.close()
  directory.remove()
})

test('a node of the lab enrols, and from then on its own agent answers for it, also after a restart of the lab', async () => {
  const [before] = await lab.control.devices()
  expect(before?.state).toBe('not enrolled')
  const id = before?.id as string
  await expect(lab.control.enrol(id, url, 'a-wrong-token')).rejects.toThrow(/no such token/)
  expect(await lab.control.enrol(id, url, `token-of-${id}`)).toMatchObject({ id, state: 'running', url: before?.url })

  const read = await ask(id, 'read')
  expect(read).toMatchObject({ error: null, ok: true, device: id, approval_status: 'auto_approved' })
  expect(JSON.parse(String(read.result?.content))).toHaveProperty('recordIntervalMs')

  await lab.stop()
  lab = await runLab(directory.path, { webShards: 1 })
  expect((await lab.control.devices()).find((each) => each.id === id)).toMatchObject({
    state: 'running',
    url: before?.url,
  })
  expect(await ask(id, 'again')).toMatchObject({ ok: true, device: id })
})

async function ask(id: string, idempotencyKey: string) {
  const device = (await lab.control.devices()).find((each) => each.id === id)
  const body = issueRequest(
    {
      requestId: `req_${Buffer.from(idempotencyKey.padEnd(12, '.')).toString('hex')}`,
      device: id,
      idempotencyKey,
      capability: 'fs.read',
      args: { path: `${device?.root}/etc/config.json` },
      deadlineMs: 20_000,
      grant: null,
    },
    signing,
  )
  const response = await fetch(`${device?.url}/capability`, { method: 'POST', body: JSON.stringify(body) })
  return capabilityAnswer.parse(await response.json())
}

test("an agent's port is outside the ephemeral range, and an agent with a taken port reports it", async () => {
  const devices = await lab.control.devices()
  const ports = devices.map((device) => Number(new URL(device.url).port))
  // Linux hands out 32768 and up to whatever connects next.
  expect(ports.filter((port) => port < 10_240 || port >= 32_000)).toEqual([])

  const [id, port] = [devices[1]!.id, ports[1]]
  const other = createServer().listen(port, '127.0.0.1')
  await once(other, 'listening')
  await expect(lab.control.enrol(id, url, `token-of-${id}`)).rejects.toThrow(/EADDRINUSE.*see log/)
  other.close()
  expect(await lab.control.enrol(id, url, `token-of-${id}`)).toMatchObject({ id, state: 'running' })
})
