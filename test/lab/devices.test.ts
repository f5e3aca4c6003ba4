import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { capabilityAnswer } from '../../domain/mesh.ts'
import { processState } from '../../lab/children.ts'
import { type Journal, type Outcome, openJournal, whatBecameOf } from '../../lab/effects.ts'
import { issueManifest, issueRequest, publicHalf } from '../../mesh/sign.ts'
import { eventually, temporaryDirectory } from '../support/directory.ts'
import { labDirectory, type RunningLab, runLab } from '../support/running-lab.ts'

describe('devices', () => {
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

  test('a node of the lab enrols, and from then on its own agent answers for it, also after the lab was started again', async () => {
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

  test("an agent's port is none that any connection may be given, and an agent that finds it taken says so", async () => {
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
})

describe('effects', () => {
  let directory: ReturnType<typeof temporaryDirectory>
  let file: string
  beforeEach(() => {
    directory = temporaryDirectory()
    file = join(directory.path, 'effects.jsonl')
  })
  afterEach(() => directory.remove())

  const cannotTell = () => null
  const fine: Outcome = { status: 'done', detail: 'done', result: {} }
  const open = (told: (request: string) => Outcome | null = cannotTell): Journal => openJournal(file, told)
  const entry = (event: string) =>
    `${JSON.stringify({ at: new Date().toISOString(), key: 'k', request: 'POST /x {}', event, detail: event, result: {} })}\n`

  test('a write is in the journal before it starts', async () => {
    const journal = open()
    await journal.once('k', 'vm-101', 'POST /x {}', async () => {
      expect(readFileSync(file, 'utf8')).toContain('"event":"accepted"')
      return fine
    })
    expect(journal.get('k')).toMatchObject({ status: 'done', runs: 1 })
  })

  test('writes about one thing happen one after another, about two things side by side', async () => {
    const journal = open()
    const order: string[] = []
    const bothThings = Promise.withResolvers<void>()
    const slow = async (name: string) => {
      order.push(`${name} begins`)
      if (name === 'c') bothThings.resolve()
      // The first write about the one thing ends only when one about the other has begun.
      await bothThings.promise
      order.push(`${name} ends`)
      return fine
    }
    const write = (key: string, about: string) => journal.once(key, about, key, () => slow(key))
    await Promise.all([write('a', 'vm-101'), write('b', 'vm-101'), write('c', 'vm-102')])
    expect(order.indexOf('b begins')).toBeGreaterThan(order.indexOf('a ends'))
    expect(order.indexOf('c begins')).toBeLessThan(order.indexOf('a ends'))
  })

  test('a write that throws has failed, and is not tried again under its key', async () => {
    const journal = open()
    const record = await journal.once('k', 'vm-101', 'X', () => Promise.reject(new Error('no room')))
    expect(record).toMatchObject({ status: 'failed', detail: 'no room' })
    expect(await journal.once('k', 'vm-101', 'X', async () => fine)).toMatchObject({ status: 'failed', runs: 1 })
  })

  test('a write that was accepted but not started when the controller died has failed', () => {
    appendFileSync(file, entry('accepted'))
    expect(open().get('k')).toMatchObject({ status: 'failed', runs: 0 })
  })

  test('a write that was under way when the controller died stays running where nothing can tell', async () => {
    appendFileSync(file, entry('accepted') + entry('started'))
    const journal = open()
    expect(journal.get('k')).toMatchObject({ status: 'running', runs: 1 })
    expect(await journal.once('k', 'vm-101', 'POST /x {}', async () => fine)).toMatchObject({
      status: 'running',
      runs: 1,
    })
  })

  test('a line that was cut by a crash is left out, and the journal goes on behind it', async () => {
    appendFileSync(file, `${entry('accepted') + entry('started') + entry('done')}{"at":"20`)
    await open().once('next', 'vm-101', 'Y', async () => fine)
    expect(open().all()).toMatchObject([
      { key: 'k', status: 'done' },
      { key: 'next', status: 'done' },
    ])
  })

  const placement = { 'vm-101': 'host-osl-4' }
  test.each([
    ['POST /v1/vms/vm-101/start {"host":"host-osl-4"}', 'done'],
    ['POST /v1/vms/vm-101/start {"host":"host-osl-2"}', 'failed'],
    ['POST /v1/vms/vm-101/migrate {"from":"host-osl-1","to":"host-osl-4"}', 'done'],
    ['POST /v1/vms/vm-101/migrate {"from":"host-osl-4","to":"host-osl-1"}', 'failed'],
    // Every VM begins again with the lab.
    ['POST /v1/vms/vm-101/stop {"host":"host-osl-4"}', 'failed'],
    ['POST /v1/vms/vm-101/restart {"host":"host-osl-4"}', 'done'],
    // Nothing that a converge changes remains when its nodes are gone.
    ['POST /v1/shards/db-osl-1/converge {}', undefined],
  ])('what became of %s: %s', (request, status) => {
    expect(whatBecameOf({ placement }, request)?.status).toBe(status)
  })
})

describe('restart', () => {
  let directory: ReturnType<typeof labDirectory>
  const labs: RunningLab[] = []

  beforeEach(() => {
    directory = labDirectory()
  })
  afterEach(async () => {
    for (const lab of labs.splice(0)) await lab.stop()
    directory.remove()
  })

  async function start(): Promise<RunningLab> {
    const lab = await runLab(directory.path, { webShards: 0 })
    labs.push(lab)
    return lab
  }

  /** Every process of the lab, by what it recorded: nodes, hosts, and the VMs that hosts run. */
  function pids(dir: string): number[] {
    const children = JSON.parse(readFileSync(join(dir, 'children.json'), 'utf8')) as { id: string; pid: number }[]
    const beats = readdirSync(join(dir, 'storage')).flatMap((vm) =>
      readdirSync(join(dir, 'storage', vm))
        .filter((name) => name.startsWith('running.'))
        .map((name) => Number(readFileSync(join(dir, 'storage', vm, name), 'utf8'))),
    )
    return [...children.filter(({ id }) => id !== 'controller').map(({ pid }) => pid), ...beats]
  }

  test('killing the controller leaves no node behind, not even a stopped one', async () => {
    const lab = await start()
    await lab.control.break('replication_lag', 'db-osl-1')
    const all = pids(lab.dir)
    expect(all).toHaveLength(4 + 9 + 25)
    lab.process.kill('SIGKILL')
    await eventually('every process to be gone', () => all.every((pid) => processState(pid) === 'gone'))
  })

  test('a lab that is asked to stop takes every process with it', async () => {
    const lab = await start()
    const all = pids(lab.dir)
    lab.process.kill('SIGTERM')
    await once(lab.process, 'exit')
    await eventually('every process to be gone', () => all.every((pid) => processState(pid) === 'gone'))
  })

  test('a second start finds VMs where they were, the counters, hosts to be emptied, and the answers to writes', async () => {
    const first = await start()
    const { answer } = await first.write('k', '/v1/vms/vm-112/migrate', { from: 'host-osl-4', to: 'host-ams-3' })
    expect(answer.status).toBe('done')
    const counter = Number(readFileSync(join(first.dir, 'storage/vm-112/counter'), 'utf8'))
    await first.control.break('drain', 'host-osl-2')
    await first.control.break('step_fails', 'host-osl-3')
    await first.stop()
    const second = await start()
    const { vms, hosts } = await second.inventory()
    expect(hosts.find(({ id }) => id === 'host-osl-2')?.state).toBe('draining')
    expect((await fetch(`${second.url}/readyz`)).status).toBe(200)
    expect(vms.find(({ id }) => id === 'vm-112')).toMatchObject({ host: 'host-ams-3', running: true })
    expect(Number(readFileSync(join(second.dir, 'storage/vm-112/counter'), 'utf8'))).toBeGreaterThan(counter)
    const again = await second.write('k', '/v1/vms/vm-112/migrate', { from: 'host-osl-4', to: 'host-ams-3' })
    expect(again.answer).toEqual(answer)
    expect(await second.control.effects()).toMatchObject([{ key: 'k', runs: 1 }])
  })

  test('two labs do not share a directory', async () => {
    const lab = await start()
    await expect(runLab(lab.dir)).rejects.toThrow(/another lab runs in/)
    expect((await fetch(`${lab.url}/readyz`)).status).toBe(200)
  })

  test('nodes know no token, and where the start is root they run as another user', async () => {
    const lab = await start()
    const shown = execFileSync('ps', ['-o', 'uid=,args=', '-p', pids(lab.dir).join(',')], { encoding: 'utf8' })
    const uids = new Set(
      shown
        .trim()
        .split('\n')
        .map((line) => Number(line.trim().split(/\s+/)[0])),
    )
    expect(uids.size).toBe(1)
    if (process.getuid!() === 0) expect(uids.has(0)).toBe(false)
    expect(shown).not.toContain('token')
  })
})
