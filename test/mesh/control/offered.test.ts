import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { syncInventory } from '../../../db/inventory/sync-inventory.ts'
import { capabilitiesOn } from '../../../mesh/agent/agent-state.ts'
import { type MeshSpec, meshSpecs, specOf } from '../../../mesh/registry.ts'
import { tools } from '../../../tools/registry.ts'
import { announced } from '../../api/announced.ts'
import { scriptedPlatform } from '../../api/scripted-platform.ts'
import { claimedIncident } from '../../support/database.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import {
  corePort,
  enrolled,
  prepared,
  type RealAgent,
  ran,
  realAgent,
  stopDevicesAtEnd,
  toolNamed,
  useMeshApi,
} from './mesh-api.ts'
import type { ScriptedDevice } from './scripted-device.ts'

describe('offered', () => {
  describe('logs', () => {
    const api = useMeshApi()
    const place = temporaryDirectory()
    const on = 'node-osl-1'
    const file = join(place.path, 'log/app.log')

    beforeAll(async () => {
      mkdirSync(join(place.path, 'log'))
      const at = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
      const quiet = Array.from({ length: 300 }, (_, n) => `${at(119 - n / 3)} GET /page/${n} 200`)
      const loud = Array.from({ length: 5 }, (_, n) => `${at(4)} cannot reach 10.0.0.${n}: password=hunter2hunter2`)
      writeFileSync(file, [...quiet, ...loud].join('\n'))
      await realAgent(api, on, {
        terms: { capabilities: [], roots: [{ path: join(place.path, 'log'), writable: false }] },
      })
    })
    afterAll(() => place.remove())

    test('search_logs asks a device as device_logs does, announced under its own name and arguments', async () => {
      const id = await claimedIncident(api.db)
      const given = { on, path: file, window: '1h', contains: ['cannot'] }
      const announcedArgs = tools.get('search_logs')?.input.parse(given) as Record<string, unknown>
      const key = await announced(api.db, id, 'search_logs', announcedArgs, null, 'read')
      const { on: _, ...args } = given
      const sent = { capability: 'log.read', args, tool: 'search_logs' }
      const { status, body } = await api.post(`/devices/${on}/calls`, { body: sent, key, as: api.tokens.agent })
      expect([status, body.source, body.on]).toEqual([200, on, { kind: 'node', id: on }])
      expect(body.summary).toMatchObject({ window: '1h', asked: { labels: { path: file }, contains: ['cannot'] } })
      // Under another name, with other arguments, or as another tool it was never announced.
      for (const other of [
        { ...sent, tool: undefined },
        { ...sent, args: { ...args, window: '2h' } },
        { ...sent, tool: 'exec' },
      ]) {
        const again = await announced(api.db, id, 'search_logs', { ...announcedArgs, contains: ['x'] }, null, 'read')
        const refused = await api.post(`/devices/${on}/calls`, { body: other, key: again, as: api.tokens.agent })
        expect([refused.status, refused.body.code]).toEqual([403, 'UNJUDGED'])
      }
    })

    test('a run reads a log of a device as templates, and lines of the whole by its digest; no secret of it is kept', async () => {
      const id = await claimedIncident(api.db)
      const key = await announced(api.db, id, 'device_logs', { on, path: file }, null, 'read')
      const body = { capability: 'log.read', args: { path: file } }
      const { status, body: answer } = await api.post(`/devices/${on}/calls`, { body, key, as: api.tokens.agent })
      expect([status, answer.source, answer.isEmpty]).toEqual([200, on, false])
      expect(answer).not.toHaveProperty('lines')
      const { templates } = answer.summary as unknown as {
        templates: { template: string; count: number; isNew?: boolean }[]
      }
      expect(templates[0]).toMatchObject({ count: 5, isNew: true })
      expect(JSON.stringify(answer.summary).length).toBeLessThanOrEqual(2_000)
      const lines = await api.get(`/incidents/${id}/bodies/${answer.digest}/lines?match=cannot`)
      expect(lines.body.lines as unknown as string[]).toHaveLength(5)
      expect(JSON.stringify(lines.body)).not.toContain('hunter2')
    })
  })

  describe('offered', () => {
    const platform = scriptedPlatform()
    const api = useMeshApi({ platform })
    stopDevicesAtEnd()
    let node: ScriptedDevice
    beforeAll(async () => {
      await syncInventory(api.db, platform.inventoryState)
      node = await enrolled(api, 'node-osl-1', { mode: 'user' })
      await enrolled(api, 'host-osl-1', {
        guests: 'docker',
        terms: { capabilities: ['shell.exec', 'docker.container.exec'], roots: [] },
      })
      await api.post('/devices/node-osl-1/health')
    })

    /** What the model reads of a look-up. */
    async function looked(tool: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
      const context = { core: corePort(api), incidentId: '', stepKey: 'x', ifMatch: null }
      const answer = await toolNamed(tool).run(toolNamed(tool).input.parse(args) as never, context)
      if (!answer.ok) throw new Error(JSON.stringify(answer))
      return toolNamed(tool).output.parse(answer.data) as Record<string, unknown>
    }

    test('a run that looks a node up reads what its device can be asked, and no device is asked for that', async () => {
      const heard = node.heard.length
      const { device } = await looked('get_node', { id: 'node-osl-1' })
      const { capabilities } = device as { capabilities: string[] }
      expect(device).toMatchObject({ id: 'node-osl-1' })
      expect(capabilities).toContain('fs.read')
      // Not in mode user, and what the device itself said that it lacks.
      for (const none of ['pkg.install', 'docker.container.list']) expect(capabilities).not.toContain(none)
      expect(node.heard.length).toBe(heard)
    })

    test('a list of nodes tells it for each, and null where there is no device', async () => {
      const { items } = (await looked('list_nodes_by_shard', { shard_id: 'db-osl-1' })) as {
        items: { id: string; device: { id: string } | null }[]
      }
      expect(items.map(({ id, device }) => [id, device?.id ?? null])).toEqual([
        ['node-osl-1', 'node-osl-1'],
        ['node-osl-2', null],
      ])
      expect(await looked('node_health', { node: 'host-osl-1' })).toMatchObject({
        device: { id: 'host-osl-1', mode: 'all', capabilities: ['shell.exec', 'docker.container.exec'] },
      })
    })

    test('of a VM without a device it is told what goes through that of its host', async () => {
      const inGuests = meshSpecs.filter((spec) => spec.throughHost).map((spec) => spec.name)
      expect(inGuests).toEqual(['exec', 'shell_eval'])
      const onHost = { id: 'host-osl-1', mode: 'all', capabilities: ['shell.exec'] }
      expect(await looked('current_vm_host', { vm: 'vm-1' })).toMatchObject({ device: onHost })
      expect(await looked('current_vm_host', { vm: 'vm-2' })).toMatchObject({ device: null })
      const { body } = await api.get('/vms')
      expect(
        (body.items as unknown as { id: string; device: unknown }[]).find(({ id }) => id === 'vm-1')?.device,
      ).toEqual(onHost)
    })

    test('a device that can be asked nothing offers nothing, and its host is not asked in its place', async () => {
      const settings = { mode: 'all', terms: { capabilities: [], roots: [] } }
      const vm = await enrolled(api, 'vm-1', settings)
      expect(await looked('current_vm_host', { vm: 'vm-1' })).toMatchObject({ device: { id: 'vm-1' } })
      await api.put('/devices/vm-1', { body: { ...settings, url: vm.url, enabled: false } })
      expect(await looked('current_vm_host', { vm: 'vm-1' })).toMatchObject({ device: null })
      await api.post('/devices/node-osl-1/revoke', { body: {} })
      expect(await looked('get_node', { id: 'node-osl-1' })).toMatchObject({ device: null })
    })
  })

  describe('specs', () => {
    const yes = (value: boolean | undefined): string => (value ? 'yes' : 'no')

    function askedAbout({ asked, command, capability }: MeshSpec): string {
      if (asked) return 'always'
      if (command) return 'unless its words prove it a read'
      return /^(?:fs|disk|git)\./.test(capability) ? 'for what is held for secret' : 'no'
    }

    const rowOf = (spec: MeshSpec): string =>
      `| \`${spec.name}\` | \`${spec.capability}\` | ${spec.effect} | ${askedAbout(spec)} | ${yes(!spec.privileged)} | ${yes(spec.rehearses)} | ${yes(spec.grantable)} |`

    test('the list of tools in docs/reference/mesh.md is the list in the code', () => {
      const text = readFileSync(new URL('../../../docs/reference/mesh.md', import.meta.url), 'utf8')
      const rows = text.split('\n').filter((line) => /^\| `\w+` \| `[a-z.]+` \| (?:read|write) \|/.test(line))
      expect(rows).toEqual(meshSpecs.map(rowOf))
    })

    test('an agent accepts exactly what the spec of a capability says', () => {
      const onDevice = new Map(capabilitiesOn({}).map(({ capability, args }) => [capability, args]))
      expect([...onDevice.keys()].sort()).toEqual(meshSpecs.map(({ capability }) => capability).sort())
      for (const { capability, args } of meshSpecs) expect(onDevice.get(capability)).toBe(args)
    })

    /** Every module that is loaded with this one, from the root of the repository. */
    function loadedWith(file: string, found = new Set<string>()): Set<string> {
      if (found.has(file)) return found
      found.add(file)
      const text = readFileSync(file, 'utf8').replace(/^import type .*$/gm, '')
      for (const [, path] of text.matchAll(/^(?:import|\} from|export \* from)[^']*'(\.[^']+)'/gm))
        if (path !== undefined) loadedWith(join(dirname(file), path), found)
      return found
    }

    test('an agent loads nothing of the control plane', () => {
      const root = fileURLToPath(new URL('../../..', import.meta.url))
      const loaded = [...loadedWith(join(root, 'mesh/agent/main.ts'))].map((file) => relative(root, file))
      expect(loaded).toContain('mesh/specs/fs.ts')
      const foreign = loaded.filter(
        (file) => !/^(?:domain|safety|mesh\/agent|mesh\/specs)\/|^mesh\/(?:paths|sign)\.ts$/.test(file),
      )
      expect(foreign).toEqual([])
    })

    describe('the control plane lets less through than a device accepts', () => {
      const accepts = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown) =>
        schema.safeParse(value).success
      const letters = (count: number) => 'a'.repeat(count)

      test('content of fs.write: 100,000 characters of 1,048,576', () => {
        const { args, input } = specOf('fs.write')
        const write = (count: number) => ({ path: '/srv/x', content: letters(count) })
        expect([100_000, 100_001].map((count) => accepts(input, write(count)))).toEqual([true, false])
        expect([1_048_576, 1_048_577].map((count) => accepts(args, write(count)))).toEqual([true, false])
      })

      test('a message of git.commit: 3 to 2,000 characters of 1 to 5,000', () => {
        const { args, input } = specOf('git.commit')
        const commit = (count: number) => ({ path: '/srv/x', message: letters(count) })
        expect([2, 3, 2_000, 2_001].map((count) => accepts(input, commit(count)))).toEqual([false, true, true, false])
        expect([0, 1, 5_000, 5_001].map((count) => accepts(args, commit(count)))).toEqual([false, true, true, false])
      })

      test('files of git.commit: 100 of 200, 200 characters of 4,000', () => {
        const { args, input } = specOf('git.commit')
        const commit = (files: number, length: number) => ({
          path: '/srv/x',
          message: 'a message',
          files: Array.from({ length: files }, () => letters(length)),
        })
        expect([commit(100, 200), commit(101, 1), commit(1, 201)].map((each) => accepts(input, each))).toEqual([
          true,
          false,
          false,
        ])
        expect([commit(200, 4_000), commit(201, 1), commit(1, 4_001)].map((each) => accepts(args, each))).toEqual([
          true,
          false,
          false,
        ])
      })
    })
  })
})

describe('guests', () => {
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
    })

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
    })

    test('a text for bash is read by the bash of the guest, once', async () => {
      const command = 'for n in 1 2; do echo "$n $0"; done | tac'
      const { answer } = await ran(api, 'shell_eval', { on: 'vm-101', command, reason: 'because' }, 'approved')
      const said = ['pct', 'exec', '101', '--', '/bin/bash', '--noprofile', '--norc', '-c', command]
      expect((answer as { data: { stdout: string } }).data.stdout).toBe(
        `${said.map((word) => `<${word}>`).join('')}\n2 /bin/bash\n1 /bin/bash\n`,
      )
    })

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
      const { answer } = await ran(
        api,
        'exec',
        { on: 'vm-101', argv: ['rm', '-rf', '/'], reason: 'because' },
        'approved',
      )
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
  })
})
