import { expect, test } from '@jest/globals'
import { buildOutput } from '../../effects/devices/ask-device.ts'
import { specNamed } from '../../mesh/registry.ts'
import { boundProcessTable } from '../../mesh/specs/process-table.ts'

const header = 'USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND'
const row = (pid: number, share: number, command: string) =>
  `root   ${pid}  ${share.toFixed(1)}  0.0      0     0 ?        S    10:00   0:00 ${command}`
const kernel = Array.from({ length: 200 }, (_, n) => row(n + 2, 0, `[kworker/${n}:0]`))
const idle = Array.from({ length: 100 }, (_, n) => row(1_000 + n, 0, `/usr/sbin/daemon${n}`))
const table = [header, ...kernel, ...idle, row(4_711, 97.5, `/srv/web/server --key=${'x'.repeat(900)}`), ''].join('\n')

test('a long table has the processes with the most CPU usage, up to a limit, and the number of the others', () => {
  const bounded = boundProcessTable(['ps', 'aux'], table) ?? ''
  const lines = bounded.trimEnd().split('\n')
  expect(lines).toHaveLength(52)
  expect(lines[0]).toBe(header)
  expect(lines[1]).toContain('4711')
  expect(bounded).not.toContain('[kworker')
  expect(lines.at(-1)).toContain('251 more of 301 processes are left out')
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(300)
  expect(Buffer.byteLength(bounded)).toBeLessThan(6_000)
})

test('a requested order is kept, and a short table and another program are unchanged', () => {
  const sorted = boundProcessTable(['/bin/ps', 'aux', '--sort=pid'], table) ?? ''
  expect(sorted.split('\n')[1]).toBe(kernel[0])
  expect(boundProcessTable(['ps', '-p', '4711'], [header, idle[0], ''].join('\n'))).toBeNull()
  expect(boundProcessTable(['cat', '/tmp/table'], table)).toBeNull()
  expect(boundProcessTable(['ps', '-ef'], table)).toContain('4711')
})

test('a bounded answer counts as cut, so nothing is absent by it', () => {
  const spec = specNamed('exec')
  if (!spec) throw new Error('no exec')
  const executor = { resource: { kind: 'node', id: 'n1' }, device: { id: 'n1' } } as never
  const answer = (stdout: string) =>
    ({ ok: true, truncated: false, result: { exit_code: 0, stdout, stderr: '' } }) as never
  const input = { argv: ['ps', 'aux'] }
  expect(buildOutput(executor, answer(table), { spec, input })).toMatchObject({ truncated: true, exit_code: 0 })
  expect(buildOutput(executor, answer('x'), { spec, input })).toMatchObject({ truncated: false, stdout: 'x' })
})
