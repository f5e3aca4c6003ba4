import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import type { CapabilityAnswer, JournalEntry } from '../../../domain/mesh.ts'
import { readAddress, whyTls } from '../../../mesh/agent/manifest.ts'
import { signed, writePublicKey } from '../../../mesh/sign.ts'
import { eventually, freePort, temporaryDirectory } from '../../support/directory.ts'
import { aLeave, aManifest, aRequest, inSeconds, keys, newRequestId, type Running, startAgent } from './running.ts'

describe('operations', () => {
  const own = keys()
  let agent: Running
  let place: ReturnType<typeof temporaryDirectory>
  beforeAll(async () => {
    agent = await startAgent(own, { manifest: aManifest(own, { limits: { concurrent: 2, timeout_seconds: 100 } }) })
    place = temporaryDirectory()
  })
  afterAll(async () => {
    await agent.stop()
    place.remove()
  })

  type Heard = { id: string | null; event: string; data: unknown }

  /** Reads a stream until `enough`, or to its end. */
  async function listen(id: string, lastEventId?: number, enough = (_: Heard[]) => false): Promise<Heard[]> {
    const stop = new AbortController()
    const response = await fetch(`${agent.url}/operations/${id}`, {
      headers: {
        ...aLeave(`/operations/${id}`, own.control),
        accept: 'text/event-stream',
        ...(lastEventId !== undefined && { 'last-event-id': String(lastEventId) }),
      },
      signal: stop.signal,
    })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const heard: Heard[] = []
    let text = ''
    try {
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        text += Buffer.from(chunk).toString()
        const blocks = text.split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks.filter((block) => !block.startsWith(':'))) {
          const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? null
          heard.push({ id: field('id'), event: field('event') ?? '', data: JSON.parse(field('data') ?? 'null') })
        }
        if (enough(heard)) break
      }
    } finally {
      stop.abort()
    }
    return heard
  }

  function cancel(requestId: string, key = own.control) {
    const body = {
      request_id: requestId,
      nonce: randomBytes(16).toString('base64'),
      issued_at: inSeconds(0),
      device: 'web-1',
    }
    return fetch(`${agent.url}/operations/${requestId}`, { method: 'DELETE', body: JSON.stringify(signed(body, key)) })
  }

  async function read(path: string, headers: Record<string, string> = aLeave(path, own.control)) {
    const response = await fetch(`${agent.url}${path}`, { headers })
    return { status: response.status, body: (await response.json()) as Record<string, never> }
  }
  const lookUp = async (id: string) => (await read(`/operations/${id}`)).body as unknown as CapabilityAnswer

  test('a long operation is answered at once, tells its lines as they come, and then its answer', async () => {
    const go = join(place.path, 'go')
    const text = `echo one; until [ -e ${go} ]; do sleep 0.1; done; printf '\\033[31mtwo\\033[0m\\n'; echo three >&2`
    const { status, answer } = await agent.granted('shell.eval', { text }, { stream: true })
    expect([status, answer.status, answer.result]).toEqual([202, 'running', null])
    const id = answer.request_id
    const first = await listen(id, undefined, (heard) => heard.length > 0)
    expect(first).toEqual([{ id: '1', event: 'line', data: 'one' }])
    expect((await lookUp(id)).status).toBe('running')
    writeFileSync(go, '')
    const rest = await listen(id, 1)
    expect(
      rest
        .slice(0, -1)
        .map(({ data }) => data)
        .sort(),
    ).toEqual(['three', 'two'])
    expect(rest.at(-1)).toMatchObject({
      event: 'answer',
      data: { status: 'done', ok: true, result: { stdout: 'one\ntwo\n', stderr: 'three\n' } },
    })
    const later = await listen(id)
    expect(later).toEqual([rest.at(-1)])
    expect(await lookUp(id)).toEqual(rest.at(-1)?.data)
    await agent.kill()
    await agent.up()
    expect(await lookUp(id)).toEqual(rest.at(-1)?.data)
  })

  test('a late listener hears how many lines are gone, and the newest of them', async () => {
    const end = join(place.path, 'end-of-the-lines')
    const text = `seq 1 3000; while [ ! -e ${end} ]; do sleep 0.1; done`
    const { answer } = await agent.granted('shell.eval', { text }, { stream: true })
    const hasAll = (heard: Heard[]) => heard.some(({ id }) => id === '3000')
    await listen(answer.request_id, undefined, hasAll)
    const heard = await listen(answer.request_id, undefined, hasAll)
    writeFileSync(end, '')
    const lines = heard.filter(({ event }) => event === 'line')
    expect(lines.at(-1)).toEqual({ id: '3000', event: 'line', data: '3000' })
    expect(lines.length).toBe(1_000)
    expect(heard.find(({ event }) => event === 'missed')?.data).toBe(2_000)
  })

  test('a cancel reaches the process, if the control plane signed it', async () => {
    const after = join(place.path, 'after-cancel')
    const text = `echo begun; sleep 5; touch ${after}`
    const { answer } = await agent.granted('shell.eval', { text }, { stream: true })
    const id = answer.request_id
    await listen(id, undefined, (heard) => heard.length > 0)
    const forged = await cancel(id, keys().control)
    expect([forged.status, ((await forged.json()) as CapabilityAnswer).error?.code]).toEqual([401, 'bad_signature'])
    expect((await lookUp(id)).status).toBe('running')
    expect((await cancel(id)).status).toBe(202)
    const ended = await eventually('it to end', async () => {
      const now = await lookUp(id)
      return now.status !== 'running' && now
    })
    expect(ended).toMatchObject({ status: 'failed', error: { code: 'cancelled' }, result: { stdout: 'begun\n' } })
    expect(existsSync(after)).toBe(false)
    expect((await cancel(id)).status).toBe(200)
    expect((await cancel(newRequestId())).status).toBe(404)
  })

  test('no more runs at once than the manifest allows, and what is turned away was not done', async () => {
    // They run until they may end: on a busy machine any span would be too short.
    const gate = join(place.path, 'may-end')
    const text = `until [ -e ${gate} ]; do sleep 0.1; done; echo ran >> ${join(place.path, 'ran')}`
    const [one, two] = await Promise.all([1, 2].map(() => agent.granted('shell.eval', { text }, { stream: true })))
    const file = join(place.path, 'third')
    const third = await agent.granted('shell.exec', { argv: ['touch', file] })
    expect([third.status, third.answer.error?.code]).toEqual([429, 'busy'])
    expect(existsSync(file)).toBe(false)
    writeFileSync(gate, '')
    await Promise.all([one, two].map((started) => listen(started?.answer.request_id ?? '')))
    expect((await agent.granted('shell.exec', { argv: ['touch', file] })).answer.ok).toBe(true)
  })

  test('the same key while it runs gets the same answer, and it runs once', async () => {
    const file = join(place.path, 'together')
    const args = { text: `sleep 1; echo once >> ${file}; cat ${file}` }
    const key = { idempotency_key: 'together' }
    const [a, b] = await Promise.all([agent.granted('shell.eval', args, key), agent.granted('shell.eval', args, key)])
    expect(a?.answer.result?.stdout).toBe('once\n')
    expect(b?.answer).toEqual({ ...a?.answer, request_id: b?.answer.request_id })
  })

  test('what was done is told to the caller that the control plane allowed, once, for that alone', async () => {
    const { answer } = await agent.call('shell.exec', { argv: ['uptime'] })
    const path = `/operations/${answer.request_id}`
    const once = aLeave(path, own.control)
    expect(await read(path, once)).toEqual({ status: 200, body: answer })
    const refused: [string, Record<string, string>, number, string][] = [
      [path, {}, 401, 'bad_signature'],
      [path, { authorization: 'Bearer of-nothing' }, 401, 'bad_signature'],
      [path, once, 409, 'replayed_nonce'],
      [path, aLeave('/journal?after=0', own.control), 401, 'bad_signature'],
      [path, aLeave(path, keys().control), 401, 'bad_signature'],
      [path, aLeave(path, { ...own.control, id: 'cp-9' }), 401, 'unknown_key'],
      [path, aLeave(path, own.control, { device: 'web-2' }), 403, 'wrong_device'],
      [path, aLeave(path, own.control, { issued_at: inSeconds(-3_000) }), 401, 'clock_skew'],
      [path, aLeave(path, own.control, { request_id: answer.request_id }), 400, 'malformed'],
      ['/journal?after=0', {}, 401, 'bad_signature'],
      ['/journal?after=0', aLeave('/journal?after=1', own.control), 401, 'bad_signature'],
    ]
    for (const [asked, headers, status, code] of refused) {
      const said = await read(asked, headers)
      expect([asked, said.status, (said.body as { error?: { code?: string } }).error?.code]).toEqual([
        asked,
        status,
        code,
      ])
      expect(JSON.stringify(said.body)).not.toContain('load average')
    }
    // A leave to read stops nothing.
    const order = Buffer.from(aLeave(path, own.control).authorization.slice('Mesh '.length), 'base64url').toString()
    expect((await fetch(`${agent.url}${path}`, { method: 'DELETE', body: order })).status).toBe(400)
  })

  test('the chain of the journal is told in order, without what its entries say, and whole', async () => {
    const { body: page } = await read('/journal?after=0')
    const { entries, first, last } = page as unknown as { entries: JournalEntry[]; first: number; last: number }
    expect([first, entries.length, entries[0]?.kind]).toEqual([1, last, 'started'])
    const lines = readFileSync(join(agent.state, 'journal', '000000001.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
    expect(entries.map(({ hash }) => hash)).toEqual(
      lines.map((line) => createHash('sha256').update(line).digest('hex')),
    )
    for (const [index, { prev }] of entries.slice(1).entries()) expect(prev).toBe(entries[index]?.hash)
    expect(JSON.stringify(page)).not.toContain('stdout')
    expect((await read(`/journal?after=${last - 1}`)).body.entries).toEqual([entries.at(-1)])
    expect((await read(`/journal?after=${last}`)).body.entries).toEqual([])
    expect((await read('/journal?after=-1')).status).toBe(400)
  })
})

describe('shipped', () => {
  describe('tls', () => {
    test('with a certificate the agent speaks TLS', async () => {
      const place = temporaryDirectory()
      const [cert, key] = [join(place.path, 'cert.pem'), join(place.path, 'key.pem')]
      const about = ['-subj', '/CN=web-1', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '1']
      const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
      execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert, ...about], { stdio: 'ignore' })
      const agent = await startAgent(keys(), { args: ['--tls-cert', cert, '--tls-key', key] })
      try {
        expect(agent.url).toMatch(/^https:/)
        const health = await new Promise<string>((resolve, reject) => {
          const asked = request(`${agent.url}/health`, { ca: readFileSync(cert) }, (response) =>
            text(response).then(resolve, reject),
          )
          asked.on('error', reject)
          asked.end()
        })
        expect(JSON.parse(health)).toMatchObject({ status: 'ready', device: 'web-1' })
        await expect(fetch(agent.url.replace('https', 'http'))).rejects.toThrow()
      } finally {
        await agent.stop()
        place.remove()
      }
    })

    test.each([
      ['127.0.0.1:7474', true],
      ['[::1]:7474', true],
      ['127.8.0.1:1', true],
      ['0.0.0.0:7474', false],
      ['[::]:7474', false],
      ['192.0.2.1:7474', false],
    ])('without TLS the agent may listen on %s: %s', (address, may) => {
      const read = readAddress(address)
      expect(read).not.toBeNull()
      expect(read && whyTls(read, () => false) === null).toBe(may)
    })

    test('inside a tunnel of WireGuard it may as well', () => {
      const outside = Object.values(networkInterfaces())
        .flat()
        .find((one) => one && !one.internal && one.family === 'IPv4')
      const host = outside?.address ?? '192.0.2.1'
      expect(whyTls({ host, port: 7474 }, () => false)).toContain('--tls-cert')
      expect(whyTls({ host, port: 7474 }, () => true) === null).toBe(outside !== undefined)
    })

    test.each(['localhost:7474', '127.0.0.1', '127.0.0.1:99999', ':7474', '1.2.3:7'])(
      '%s is no address to listen on',
      (address) => {
        expect(readAddress(address)).toBeNull()
      },
    )
  })

  describe('shipped', () => {
    /** What an operator installs: the unit and the container, started as they say, with this machine's places for theirs. */
    const checkout = fileURLToPath(new URL('../../..', import.meta.url))
    const own = keys()
    const children: ChildProcess[] = []
    let place: ReturnType<typeof temporaryDirectory>
    let state = ''
    let address = ''
    beforeAll(async () => {
      place = temporaryDirectory()
      state = join(place.path, 'state')
      mkdirSync(state)
      writeFileSync(join(state, 'manifest.json'), JSON.stringify(aManifest(own)))
      writeFileSync(join(state, 'root-key'), writePublicKey(own.rootPublic))
      address = `127.0.0.1:${await freePort()}`
    })
    afterEach(async () => {
      for (const child of children.splice(0)) {
        const gone = new Promise((resolve) => child.once('exit', resolve))
        child.kill('SIGKILL')
        if (child.exitCode === null && child.signalCode === null) await gone
      }
    })
    afterAll(() => place.remove())

    function start([program, ...args]: string[], env: Record<string, string> = {}, cwd = checkout): ChildProcess {
      expect(program).toMatch(/^(?:\/usr\/bin\/)?node$/)
      const child = spawn(process.execPath, args, {
        cwd,
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { PATH: process.env.PATH ?? '', HOME: '/tmp', ...env },
      })
      children.push(child)
      return child
    }

    async function ready(): Promise<void> {
      await eventually('the agent', async () => (await fetch(`http://${address}/health`).catch(() => null))?.ok)
    }

    /** The arguments of a process, which the agent replaces when it takes its place. */
    const argumentsOf = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')

    test('the unit starts the agent, as the one process that systemd knows', async () => {
      const unit = readFileSync(join(checkout, 'examples/nightshift-agent.service'), 'utf8')
      const words = /^ExecStart=(.*)$/m.exec(unit)?.[1]?.split(' ') ?? []
      const here = words.map((word) =>
        word.replace('/opt/nightshift/', checkout).replace('/var/lib/nightshift-agent', state),
      )
      const child = start(here.map((word) => (word === '10.42.0.10:7474' ? address : word)))
      await ready()
      expect(argumentsOf(child.pid ?? 0)).toContain(join(checkout, 'mesh/agent/main.ts'))
      expect(child.exitCode).toBe(null)
    })

    const dockerfile = readFileSync(join(checkout, 'Dockerfile'), 'utf8').replaceAll(/\\\n/g, ' ')
    const stage = /^FROM \S+ AS agent\n([\s\S]*?)(?=^FROM )/m.exec(dockerfile)?.[1] ?? ''
    const command = (instruction: string) =>
      JSON.parse(new RegExp(`^${instruction}.*?(\\[.*\\])$`, 'm').exec(stage)?.[1] ?? '[]') as string[]

    test('everything the image copies is there, and nothing of it is left out of the context', () => {
      const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, from = '']) => from.split(' '))
      expect(copied).toContain('package-lock.json')
      for (const path of copied) expect([path, existsSync(join(checkout, path))]).toEqual([path, true])
      const stages = [...dockerfile.matchAll(/^FROM \S+ AS (\S+)$/gm)].map(([, name]) => name)
      for (const [, from] of stage.matchAll(/--from=(\S+)/g)) expect(stages).toContain(from)
      const ignored = readFileSync(join(checkout, '.dockerignore'), 'utf8').split('\n')
      for (const needed of ['cli', 'mesh', 'domain', 'safety']) expect(ignored).not.toContain(needed)
    })

    test('the container starts the agent as its one process, and knows whether it is ready', async () => {
      const env = { MESH_LISTEN: address }
      const check = async () => {
        const asking = start(command('HEALTHCHECK'), env)
        return await new Promise((resolve) => asking.once('exit', resolve))
      }
      expect(await check()).toBe(1)
      const child = start([...command('ENTRYPOINT'), '--state', state], env)
      await ready()
      expect(argumentsOf(child.pid ?? 0)).toContain(join(checkout, 'mesh/agent/main.ts'))
      expect(await check()).toBe(0)
      writeFileSync(join(state, 'manifest.json'), '{}')
      child.kill('SIGHUP')
      await eventually('it to refuse', async () => (await check()) === 1)
    })

    test('a state directory may be written relative to where the agent was started', async () => {
      const repository = join(place.path, 'repository')
      const git = (...args: string[]) => execFileSync('git', ['-C', repository, ...args])
      mkdirSync(repository)
      git('init', '--quiet')
      writeFileSync(join(repository, 'app.conf'), 'port = 80\n')
      git('add', '.')
      git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', '-m', 'first')
      writeFileSync(join(repository, 'app.conf'), 'port = 81\n')
      const roots = [{ path: repository, writable: true }]
      writeFileSync(join(state, 'manifest.json'), JSON.stringify(aManifest(own, { roots })))
      const main = join(checkout, 'cli/main.ts')
      const args = [
        '--disable-warning=ExperimentalWarning',
        main,
        'mesh',
        'agent',
        '--state',
        'state',
        '--listen',
        address,
      ]
      start(['node', ...args], {}, place.path)
      await ready()
      // Tried in a copy below the state directory, by a program that runs in another directory.
      const asked = aRequest(own, 'git.commit', { path: repository, message: 'second' }, { rehearse: true })
      const answer = await fetch(`http://${address}/capability`, { method: 'POST', body: JSON.stringify(asked) })
      expect(await answer.json()).toMatchObject({
        error: null,
        result: { diff: expect.stringContaining('+port = 81') },
      })
    })
  })
})
