import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { runCli, useServedApi } from '../support/run-cli.ts'

test('commands of stdin are judged one JSON line each, in their order, with nothing running', async () => {
  const lines = ['df -h', '{"command":"rm -rf /etc"}', 'systemctl restart mysql', '{"command":"  uptime "}']
  const { code, stdout } = await runCli(['judge', '--json'], {}, `${lines.join('\n')}\n`)
  expect(code).toBe(0)
  const answers = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(answers.map(({ command, verdict, effect }) => [command, verdict, effect])).toEqual([
    ['df -h', 'run', 'read'],
    ['rm -rf /etc', 'refuse', 'forbidden'],
    ['systemctl restart mysql', 'ask', 'write'],
    ['  uptime ', 'run', 'read'],
  ])
  for (const answer of answers) expect(answer.reason).toMatch(/\w/)
})

test('a pipe that has nothing to read just now is waited for', async () => {
  const entry = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
  // Whoever started the pipe may have made it non-blocking; Node does not undo that for its standard input.
  const script = `use Fcntl; my $f = fcntl(STDIN, F_GETFL, 0); fcntl(STDIN, F_SETFL, $f | O_NONBLOCK) or die; exec @ARGV`
  const child = spawn('perl', ['-e', script, process.execPath, entry, 'judge', '--json'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let stdout = ''
  const first = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk) => {
      stdout += chunk
      resolve()
    })
    child.on('close', () => resolve())
  })
  const ended = new Promise((resolve) => child.on('close', resolve))
  child.stdin.on('error', () => undefined)
  child.stdin.write('df -h\n')
  // The second line comes when the first is answered, so that the reader has found the pipe empty before.
  await first
  child.stdin.end('uptime\n')
  expect(await ended).toBe(0)
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).verdict),
  ).toEqual(['run', 'run'])
})

test('what would run at a known place is judged for that place', async () => {
  const verdictOf = async (...more: string[]) =>
    JSON.parse((await runCli(['judge', '--json', ...more, 'rm -rf .'])).stdout).verdict
  expect([await verdictOf(), await verdictOf('--directory', '/')]).toEqual(['ask', 'refuse'])
  expect(await runCli(['judge', '--directory', 'srv', 'rm -rf .'])).toMatchObject({ code: 2 })
})

test('a call is judged in a state that is supposed', async () => {
  const asked = { tool: 'converge_shard', args: { id: 'db-osl-1', reason: 'it lags' } }
  const resource = { kind: 'shard', id: 'db-osl-1' }
  const lines = [
    asked,
    { ...asked, state: { resolved: [resource], resource } },
    { ...asked, state: { resolved: [resource], resource, open: { tool: 'converge_shard', targets: [resource] } } },
    { ...asked, state: { resolved: [resource] } },
  ]
  const { stdout } = await runCli(['judge', '--json'], {}, lines.map((line) => JSON.stringify(line)).join('\n'))
  const answers = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(answers.map(({ verdict, code }) => `${verdict} ${code}`)).toEqual([
    'refuse STRICT_RESOLUTION',
    'run REVERSIBLE_NEAR',
    'refuse FSM_BLOCKED',
    'ask REVERSIBLE_FAR',
  ])
})

test('a person reads verdict, reason and what to do instead', async () => {
  const { stdout } = await runCli(['judge', 'tail -f /var/log/syslog'])
  expect(stdout).toMatch(
    /^ask +tail -f \/var\/log\/syslog\n +UNBOUNDED: .+\n +instead: tail -n \d+ \/var\/log\/syslog\n$/,
  )
})

test('a line that begins as JSON and is none is refused by its number', async () => {
  const { code, stderr } = await runCli(['judge', '--json'], {}, 'df\n{"command": \n')
  expect([code, stderr]).toEqual([2, expect.stringContaining('Line 2')])
})

const api = useServedApi()

test('replaying a policy over stored incidents says how much was judged again', async () => {
  const { code, stdout } = await runCli(['policy', 'replay', '--json'], api.as('viewer'))
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ differences: [], judged: 0 })
})
