import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { CapabilityAnswer, JournalEntry } from '../../../domain/mesh.ts'
import { entriesAfter } from '../../../mesh/agent/chain.ts'
import { signed } from '../../../mesh/sign.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import {
  aLeave,
  aManifest,
  inSeconds,
  keys,
  newRequestId,
  type Running,
  startAgent,
} from '../../support/running-agent.ts'

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

test('a long operation is answered at once, reports its lines as they appear, and then its answer', async () => {
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

test('an operation during which the agent died is answered with the hash of its own entry, not of the newest', async () => {
  const text = `echo begun; sleep 60; true`
  const { answer } = await agent.granted('shell.eval', { text }, { stream: true })
  await listen(answer.request_id, undefined, (heard) => heard.length > 0)
  await agent.kill()
  await agent.up()
  const interrupted = await lookUp(answer.request_id)
  expect(interrupted.error?.code).toBe('indeterminate')
  const own = entriesAfter(agent.state, 0).entries.filter(({ request_id: id }) => id === answer.request_id)
  expect(own.map(({ hash }) => hash)).toContain(interrupted.audit_hash)
})

test('a late listener learns how many lines are gone, and gets the newest', async () => {
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

test('a cancel reaches the process if the control plane signed it', async () => {
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

test('no more operations run at once than the manifest allows, and a refused one was not done', async () => {
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

test('the same key during an operation gets the same answer, and it runs once', async () => {
  const file = join(place.path, 'together')
  const args = { text: `sleep 1; echo once >> ${file}; cat ${file}` }
  const key = { idempotency_key: 'together' }
  const [a, b] = await Promise.all([agent.granted('shell.eval', args, key), agent.granted('shell.eval', args, key)])
  expect(a?.answer.result?.stdout).toBe('once\n')
  expect(b?.answer).toEqual({ ...a?.answer, request_id: b?.answer.request_id })
})

test('the outcome is reported to the caller that the control plane allowed, once, for this operation alone', async () => {
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

test('the chain of the journal is returned in order, without the content of its entries, and whole', async () => {
  const { body: page } = await read('/journal?after=0')
  const { entries, first, last } = page as unknown as { entries: JournalEntry[]; first: number; last: number }
  expect([first, entries.length, entries[0]?.kind]).toEqual([1, last, 'started'])
  const lines = readFileSync(join(agent.state, 'journal', '000000001.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
  expect(entries.map(({ hash }) => hash)).toEqual(lines.map((line) => createHash('sha256').update(line).digest('hex')))
  for (const [index, { prev }] of entries.slice(1).entries()) expect(prev).toBe(entries[index]?.hash)
  expect(JSON.stringify(page)).not.toContain('stdout')
  expect((await read(`/journal?after=${last - 1}`)).body.entries).toEqual([entries.at(-1)])
  expect((await read(`/journal?after=${last}`)).body.entries).toEqual([])
  expect((await read('/journal?after=-1')).status).toBe(400)
})
