import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { syncInventory } from '../../../db/inventory.ts'
import { scriptedPlatform } from '../../api/scripted-platform.ts'
import { enrolled, prepared, type RealAgent, ran, realAgent, stopDevicesAtEnd, useMeshApi } from './mesh-api.ts'
import type { ScriptedDevice } from './scripted-device.ts'

describe('guests', () => {
  /**
   * A Proxmox host with its own agent, and a `pct` that tells its words and runs what is behind them. What goes through: tool registry, core
   * API, signature, the agent's door, guard and journal, the process.
   */
  const api = useMeshApi()
  let host: RealAgent
  beforeAll(async () => {
    const { inventoryState } = scriptedPlatform()
    const [first] = inventoryState.vms
    if (!first) throw new Error('no VM')
    const guests = ['vm-101', 'vm-web'].map((id) => ({ ...first, id }))
    await syncInventory(api.db, { ...inventoryState, vms: [...inventoryState.vms, ...guests] })
    const pct = `#!/bin/sh\nfor word in pct "$@"; do printf '<%s>' "$word"; done\nprintf '\\n'\n[ "$1 $2 $3" = "exec 101 --" ] || exit 64\nshift 3\nexec "$@"\n`
    host = await realAgent(api, 'host-osl-1', { guests: 'pct' }, { pct })
  }, 120_000)

  const words = ['printf', '%s|', '$(id)', '`id`', 'a b', "it's", '"', '*', ';', '-n', '--', '\\n', 'ü\n2']

  test('a command for a container of Proxmox goes to pct on its host, word by word, and no shell reads it', async () => {
    const args = { on: 'vm-101', argv: words, reason: 'because' }
    const { answer } = await ran(api, 'exec', args, 'approved')
    const said = ['pct', 'exec', '101', '--', ...words].map((word) => `<${word}>`).join('')
    expect(answer).toMatchObject({
      ok: true,
      data: { on: { kind: 'vm', id: 'vm-101' }, device: 'host-osl-1', exit_code: 0 },
    })
    const { stdout } = (answer as { data: { stdout: string } }).data
    // printf itself was run with the same words.
    expect(stdout).toBe(`${said}\n${words.slice(2).join('|')}|`)
  }, 120_000)

  test('a text for bash is read by the bash of the guest, once', async () => {
    const command = 'for n in 1 2; do echo "$n $0"; done | tac'
    const { answer } = await ran(api, 'shell_eval', { on: 'vm-101', command, reason: 'because' }, 'approved')
    const said = ['pct', 'exec', '101', '--', '/bin/bash', '--noprofile', '--norc', '-c', command]
    expect((answer as { data: { stdout: string } }).data.stdout).toBe(
      `${said.map((word) => `<${word}>`).join('')}\n2 /bin/bash\n1 /bin/bash\n`,
    )
  }, 120_000)

  test('even a look in a guest is asked about, since the host sees only that pct runs something', async () => {
    const args = { on: 'vm-101', argv: ['uptime'] }
    expect(await prepared(api, 'exec', args)).toMatchObject({
      asks: { risk: 'medium', why: expect.stringContaining('host-osl-1') },
      dryRun: { details: { through: 'pct', args: { argv: ['pct', 'exec', '101', '--', 'uptime'] } } },
    })
    const { answer } = await ran(api, 'exec', args, 'unasked')
    expect(answer).toMatchObject({ ok: false, status: 403, problem: { code: 'approval_required' } })
  })

  test('what is never run is not run in a guest either, even with an approval', async () => {
    const { answer } = await ran(api, 'exec', { on: 'vm-101', argv: ['rm', '-rf', '/'], reason: 'because' }, 'approved')
    expect(answer).toMatchObject({ ok: false, problem: { code: 'blocked' } })
    expect(readFileSync(join(host.state, 'journal', '000000001.jsonl'), 'utf8')).not.toContain('rm -rf')
  })

  test('what takes an agent on the guest says so, and what a person may do', async () => {
    const refused: [string, Record<string, unknown>, string][] = [
      ['fs_read', { on: 'vm-101', path: '/etc/hostname' }, 'that takes an agent on the guest itself'],
      ['fs_list', { on: 'vm-101', path: '/etc' }, 'that takes an agent on the guest itself'],
      ['proc_list', { on: 'vm-101' }, 'that takes an agent on the guest itself'],
      ['exec', { on: 'vm-101', argv: ['uptime'], cwd: '/srv' }, 'a directory (cwd) cannot be set'],
      ['exec', { on: 'vm-web', argv: ['uptime'] }, 'vm-web is no guest with a number'],
    ]
    for (const [tool, args, why] of refused) {
      await expect(prepared(api, tool, args)).rejects.toThrow(why)
      const { answer } = await ran(api, tool, args, 'unasked')
      expect([tool, answer]).toEqual([
        tool,
        expect.objectContaining({
          ok: false,
          status: 424,
          problem: expect.objectContaining({ code: 'capability_unavailable', detail: expect.stringContaining(why) }),
        }),
      ])
      const { detail } = (answer as { problem: { detail: string } }).problem
      expect(detail).toContain(`nightshift mesh enroll ${args.on}`)
    }
  })
})

describe('hostile guests', () => {
  /** Guests that have odd names, move, or are exchanged for others, between what a person sees and what is done. */

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

  test.each(odd)('%j is no number of a guest, and nothing is asked of its host', async (on) => {
    await expect(prepared(api, 'exec', { on, argv: ['df'] })).rejects.toThrow()
  })

  test('a guest that moved to another host since a person was asked is another state, to be asked about again', async () => {
    const before = await prepared(api, 'exec', restart)
    expect(before?.dryRun.details).toMatchObject({ device: 'host-osl-1', through: 'pct' })
    await syncInventory(api.db, placed(everywhere('host-osl-3')))
    const after = await prepared(api, 'exec', restart)
    expect(after?.dryRun.details).toMatchObject({ device: 'host-osl-3' })
    expect(after?.stateFingerprint).not.toBe(before?.stateFingerprint)
    await syncInventory(api.db, placed(everywhere('host-osl-1')))
    expect((await prepared(api, 'exec', restart))?.stateFingerprint).toBe(before?.stateFingerprint)
  })

  test('what root may look with on the host is not allowed in its guests', async () => {
    const found = await prepared(api, 'exec', { on: 'vm-101', argv: ['sudo', '-n', '/usr/bin/id', '-u'] })
    expect(found).not.toHaveProperty('rootReads')
  })

  test('nor does a guest that is named in such a command run unasked', async () => {
    const found = await prepared(api, 'exec', {
      on: 'host-osl-1',
      argv: ['sudo', '-n', 'pct', 'exec', '101', '--', 'df'],
    })
    const { rootReads } = found as { rootReads?: string[][] }
    const { judgeArgv } = await import('../../../safety/command/judge.ts')
    const argv = ['sudo', '-n', 'pct', 'exec', '101', '--', 'df']
    expect(judgeArgv(argv, { knownHosts: new Set(), directory: '/', rootReads })).toMatchObject({ verdict: 'ask' })
  })

  test('words for a guest stay words behind the end of options', async () => {
    const argv = ['--', '--version', '-i', '--user=0']
    const found = await prepared(api, 'exec', { on: 'vm-101', argv, reason: 'because' })
    expect(found?.dryRun.details).toMatchObject({ args: { argv: ['pct', 'exec', '101', '--', ...argv] } })
  })

  test('a guest that is a container is looked at before a person is asked, and another one is another state', async () => {
    const asked = async (id: string) => {
      engine.rehearsal = { told: [`container web (${id})`], untried: [], rests_on: id, tried: false, container: 'web' }
      return await prepared(api, 'exec', { on: 'web', argv: ['appctl', 'restart'], reason: 'because' })
    }
    const found = await asked('a')
    expect(engine.heard.at(-1)).toMatchObject({ capability: 'docker.container.exec', rehearse: true, grant: null })
    expect(found?.dryRun.details.rehearsal).toMatchObject({ told: ['container web (a)'] })
    expect((await asked('a'))?.stateFingerprint).toBe(found?.stateFingerprint)
    expect((await asked('b'))?.stateFingerprint).not.toBe(found?.stateFingerprint)
  })
})
