import { expect, test } from '@jest/globals'
import { runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()

const runInventory = (args: string[], input?: string) => runCli(['inventory', ...args], api.as('admin'), input)

const file = `
nodes:
  - { id: web-1, group: web, hostname: web-1.example.com, ip: 192.0.2.11 }
  - { id: web-2, group: web }
hosts:
  - { id: hv-1, ramMib: 65536, cpuMc: 16000 }
`

test('a file of a site is shown, imported and given back', async () => {
  const dry = await runInventory(['import', '-', '--dry-run'], file)
  expect(dry).toMatchObject({ code: 0, stdout: 'added    web, web-1, web-2, hv-1\n' })
  expect(dry.stderr).toContain('Nothing was stored: this was a dry run.')
  expect((await runInventory(['export'])).stdout).not.toContain('web-1')
  expect((await runInventory(['import', '-'], file)).stdout).toBe('added    web, web-1, web-2, hv-1\n')
  const { stdout } = await runInventory(['export'])
  expect(JSON.parse(stdout).nodes).toContainEqual({ id: 'web-2', group: 'web', hostname: 'web-2', ip: '' })
  const again = await runInventory(['import', '-', '--json'], stdout)
  expect(JSON.parse(again.stdout)).toMatchObject({ added: [], changed: [], removed: [], applied: true })
})

test('a wrong file is refused with every place, and nothing of it is sent', async () => {
  const wrong = await runInventory(
    ['import', '-'],
    'nodes: [{ id: "a b" }, { id: c, rack: r }]\nhosts: [{ id: h, ramMib: many }]',
  )
  expect(wrong.code).not.toBe(0)
  for (const place of ['nodes.0.id', 'nodes.1', 'hosts.0.ramMib']) expect(wrong.stderr).toContain(place)
  expect((await runInventory(['import', '-'], '{ nodes: [')).stderr).toContain('is not YAML or JSON')
  expect((await runInventory(['import', '/nowhere/site.yaml'])).stderr).toContain('cannot be read')
})
