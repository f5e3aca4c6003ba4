import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { syncInventory } from '../../../db/inventory/sync-inventory.ts'
import { prepared, type RealAgent, ran, realAgent, useMeshApi } from '../../support/mesh-api.ts'
import { scriptedPlatform } from '../../support/scripted-platform.ts'

/**
 * A Proxmox host with its own agent, and a `pct` that tells its words and runs what is behind them.
 * What goes through: tool registry, core API, signature, the agent's door, guard and journal, the
 * process.
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

test('a command for a container of Proxmox is passed to pct on its host, word by word, without a shell', async () => {
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

test('even a read in a guest needs an approval, because the host sees only that pct runs something', async () => {
  const args = { on: 'vm-101', argv: ['uptime'] }
  expect(await prepared(api, 'exec', args)).toMatchObject({
    asks: { risk: 'medium', why: expect.stringContaining('host-osl-1') },
    dryRun: { details: { through: 'pct', args: { argv: ['pct', 'exec', '101', '--', 'uptime'] } } },
  })
  const { answer } = await ran(api, 'exec', args, 'unasked')
  expect(answer).toMatchObject({ ok: false, status: 403, problem: { code: 'approval_required' } })
})

test('a command that is never run is not run in a guest either, even with an approval', async () => {
  const { answer } = await ran(api, 'exec', { on: 'vm-101', argv: ['rm', '-rf', '/'], reason: 'because' }, 'approved')
  expect(answer).toMatchObject({ ok: false, problem: { code: 'blocked' } })
  expect(readFileSync(join(host.state, 'journal', '000000001.jsonl'), 'utf8')).not.toContain('rm -rf')
})

test('a capability that needs an agent in the guest is refused with the steps for a person', async () => {
  const refused: [string, Record<string, unknown>, string][] = [
    ['fs_read', { on: 'vm-101', path: '/etc/hostname' }, 'this tool needs an agent on the guest itself'],
    ['fs_list', { on: 'vm-101', path: '/etc' }, 'this tool needs an agent on the guest itself'],
    ['proc_list', { on: 'vm-101' }, 'this tool needs an agent on the guest itself'],
    ['exec', { on: 'vm-101', argv: ['uptime'], cwd: '/srv' }, 'a directory (cwd) cannot be set'],
    ['exec', { on: 'vm-web', argv: ['uptime'] }, 'vm-web is not a guest with a number'],
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
