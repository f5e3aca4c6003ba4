import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Capability } from '../../../domain/mesh.ts'
import { allCapabilities } from '../../../mesh/agent/agent-state.ts'
import { verifyChain } from '../../../mesh/agent/chain.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import {
  aGrant,
  aManifest,
  aRequest,
  keys,
  newRequestId,
  type Running,
  startAgent,
} from '../../support/running-agent.ts'

/**
 * A device that works as root: nothing is done without a grant for exactly this, whatever looks
 * harmless or was allowed elsewhere.
 */

const own = keys()
let agent: Running
let place: ReturnType<typeof temporaryDirectory>
beforeAll(async () => {
  place = temporaryDirectory()
  writeFileSync(join(place.path, 'file'), 'kept\n')
  agent = await startAgent(own, {
    manifest: aManifest(own, {
      mode: 'sudo',
      roots: [{ path: place.path, writable: true }],
      // Neither list lifts it.
      auto_approve: ['uptime', 'sudo'],
      root_reads: [['/usr/bin/id', '-u']],
    }),
  })
})
afterAll(async () => {
  await agent.stop()
  place.remove()
})

const file = () => join(place.path, 'file')
const calls = (): [Capability, Record<string, unknown>][] => [
  ['shell.exec', { argv: ['uptime'] }],
  ['shell.exec', { argv: ['sudo', '-n', '/usr/bin/id', '-u'] }],
  ['shell.eval', { text: 'uptime' }],
  ['shell.eval', { text: 'sudo -n /usr/bin/id -u' }],
  ['fs.read', { path: file() }],
  ['fs.list', { path: place.path }],
  ['fs.stat', { path: file() }],
  ['fs.write', { path: file(), content: 'x' }],
  ['git.clone', { url: `file://${place.path}`, path: join(place.path, 'clone') }],
  ['git.commit', { path: place.path, message: 'x', paths: ['file'] }],
  ['git.push', { path: place.path, remote: 'origin', branch: 'main' }],
  ['git.log', { path: place.path }],
  ['git.show', { path: place.path, revision: 'HEAD' }],
  ['git.revert', { path: place.path, revision: 'abcdef0' }],
  ['disk.usage', {}],
  ['pkg.install', { packages: ['hello'] }],
  ['pkg.search', { query: 'hello' }],
  ['proc.list', {}],
  ['proc.kill', { pid: 1, start_time: '1' }],
  ['log.read', { path: '/var/log/syslog' }],
  ['docker.container.list', {}],
  ['docker.container.exec', { container: 'web', argv: ['ls'] }],
  ['docker.container.logs', { container: 'web' }],
  ['docker.container.restart', { container: 'web' }],
  ['service.show', { unit: 'none.service' }],
  ['service.restart', { unit: 'none.service' }],
  ['service.start', { unit: 'none.service' }],
  ['service.stop', { unit: 'none.service' }],
]
/** What a device may answer besides: it has no engine, or takes no such arguments. */
const nothingDone = ['approval_required', 'capability_unavailable', 'invalid_arguments', 'blocked', 'outside_roots']

/** Entries of the journal that say that something was begun. */
function begun(): number {
  let entries = 0
  verifyChain(join(agent.state, 'journal'), ({ kind }) => {
    if (kind === 'accepted' || kind === 'running') entries += 1
  })
  return entries
}

test('every capability is tried', () => {
  expect(new Set(calls().map(([capability]) => capability)).size).toBe(allCapabilities.length)
})

test('nothing runs or is rehearsed without approval in sudo mode, and nothing begins', async () => {
  const before = begun()
  const asked = new Set<string>()
  for (const [capability, args] of calls())
    for (const rehearse of [false, true]) {
      const { answer } = await agent.call(capability, args, { rehearse })
      expect([capability, rehearse, answer.ok, answer.result]).toEqual([capability, rehearse, false, null])
      expect(nothingDone).toContain(answer.error?.code)
      if (answer.error?.code === 'approval_required') asked.add(capability)
    }
  for (const each of ['shell.exec', 'shell.eval', 'fs.read', 'fs.list', 'fs.stat', 'proc.list'])
    expect(asked).toContain(each)
  expect(begun()).toBe(before)
})

describe('a grant in sudo mode', () => {
  const uptime = { argv: ['uptime'] }
  async function withGrantFor(other: { capability?: Capability; args?: Record<string, unknown> }, changes = {}) {
    const request_id = newRequestId()
    const grant = aGrant(own, { request_id, capability: 'shell.exec', args: uptime, ...other }, changes)
    return (await agent.post(aRequest(own, 'shell.exec', uptime, { request_id, grant }))).answer
  }

  test('allows exactly this run', async () => {
    expect(await withGrantFor({})).toMatchObject({ ok: true, approval_status: 'granted' })
  })

  test.each([
    ['other words', { args: { argv: ['uptime', '-p'] } }, {}],
    ['the same words for a shell', { capability: 'shell.eval' as const, args: { text: 'uptime' } }, {}],
    ['another device', {}, { device: 'web-2' }],
    ['another request', {}, { request_id: newRequestId() }],
    ['another time', {}, { issued_at: '2020-01-01T00:00:00Z', expires_at: '2020-01-01T00:02:00Z' }],
  ])('for %s does not', async (_, other, changes) => {
    const before = begun()
    expect((await withGrantFor(other, changes)).error?.code).toMatch(/^grant_/)
    expect(begun()).toBe(before)
  })

  test.each([
    [['rm', '-rf', '/']],
    [['sh', '-c', 'rm -rf /']],
    [['sudo', '-n', 'rm', '-rf', '/']],
    [['env', '-i', 'sudo', 'dd', 'if=/dev/zero', 'of=/dev/sda']],
  ])('does not let %j run', async (argv) => {
    expect((await agent.granted('shell.exec', { argv })).answer).toMatchObject({
      ok: false,
      error: { code: 'blocked' },
    })
  })

  test("neither shows the agent's own files nor lets them be written", async () => {
    for (const [capability, args] of [
      ['fs.read', { path: join(agent.state, 'manifest.json') }],
      ['fs.write', { path: join(agent.state, 'manifest.json'), content: '{}' }],
      ['fs.list', { path: join(agent.state, 'journal') }],
    ] as const)
      expect((await agent.granted(capability, args)).answer).toMatchObject({
        ok: false,
        error: { code: 'outside_roots' },
      })
  })
})
