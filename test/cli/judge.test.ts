import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { append } from '../../db/log/append.ts'
import { agentActor } from '../../domain/event.ts'
import { claimedIncident } from '../support/database.ts'
import { looked } from '../support/events.ts'
import { emptyDir, runCli, useServedApi } from '../support/run-cli.ts'

test('commands of stdin are judged in order, one JSON line each, and nothing runs', async () => {
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

test('a pipe without data is waited for', async () => {
  const entry = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
  // Whoever started the pipe may have made it non-blocking; Node does not undo that for its
  // standard input.
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
  // The second line comes when the first is answered, so that the reader has found the pipe empty
  // before.
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

test('a command at a known place is judged for that place', async () => {
  const verdictOf = async (...more: string[]) =>
    JSON.parse((await runCli(['judge', '--json', ...more, 'rm -rf .'])).stdout).verdict
  expect([await verdictOf(), await verdictOf('--directory', '/')]).toEqual(['ask', 'refuse'])
  expect(await runCli(['judge', '--directory', 'srv', 'rm -rf .'])).toMatchObject({ code: 2 })
})

test('a call is judged in an assumed state', async () => {
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

test('a person sees verdict, reason and alternative', async () => {
  const { stdout } = await runCli(['judge', 'tail -f /var/log/syslog'])
  expect(stdout).toMatch(
    /^ask +tail -f \/var\/log\/syslog\n +UNBOUNDED: .+\n +instead: tail -n \d+ \/var\/log\/syslog\n$/,
  )
})

test('a line that begins as JSON and is invalid is refused with its number', async () => {
  const { code, stderr } = await runCli(['judge', '--json'], {}, 'df\n{"command": \n')
  expect([code, stderr]).toEqual([2, expect.stringContaining('Line 2')])
})

const api = useServedApi()

test('a policy replay over stored incidents prints how much was judged again', async () => {
  const { code, stdout } = await runCli(['policy', 'replay', '--json'], api.as('viewer'))
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ differences: [], judged: 0 })
})

const vm = { kind: 'vm' as const, id: 'vm-1' }

/** An incident with a ruling about a stop of a VM, as it stands in its log. */
async function ruledIncident(): Promise<string> {
  const id = await claimedIncident(api.db)
  const args = { id: 'vm-1', reason: 'because' }
  const usage = { promptTokens: 0, completionTokens: 0 }
  const call = { id: 'c1_0', tool: 'vm_stop', arguments: args, problem: null }
  const judged = { callId: 'c1_0', tool: 'vm_stop', arguments: args, verdict: 'ask', code: 'RISK_HIGH' }
  const prepared = { ok: true, targets: [vm], identity: { id: 'vm-1' }, stateFingerprint: '' }
  const basis = { at: '2026-11-21T02:00:00.000000Z', policy: {}, prepared }
  const more = { policyVersion: '2', effect: 'write', risk: 'high', targets: [vm], actionDigest: '', basis }
  const row = { actor: agentActor, turn: 1, detail: 'vm_stop' }
  const { metadata: seen } = looked('c0_0', [vm])
  await api.db.transaction().execute(async (trx) => {
    await append(trx, id, 1, { ...row, kind: 'tool_finished', metadata: seen } as never)
    const answer = { ...row, kind: 'model_answered', metadata: { calls: [call], usage } }
    const { seq: foldedSeq } = (await append(trx, id, 1, answer as never)).event
    await append(trx, id, 1, { ...row, kind: 'call_judged', metadata: { ...judged, ...more, foldedSeq } } as never)
  })
  return id
}

test('a policy replay prints for each rule how many rulings of how many incidents would change, and lists them on demand', async () => {
  const ids = [await ruledIncident(), await ruledIncident()]
  const file = join(emptyDir, 'policy.yaml')
  writeFileSync(file, 'version: 1\nrules:\n  - { name: no VM stops, tool: vm_stop, action: never }\n')
  const say = (...args: string[]) => runCli(['policy', 'replay', '--file', file, ...args], api.as('viewer'))
  const { code, stdout } = await say('--since', '2026-01-01')
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^2 +2 +vm_stop +ask RISK_HIGH +refuse SITE_NEVER +no VM stops$/m),
  ])
  expect(stdout).not.toContain(ids[0])
  const each = await say('--each')
  for (const id of ids)
    expect(each.stdout).toMatch(new RegExp(`^${id} +\\d+ +vm_stop +ask RISK_HIGH +refuse SITE_NEVER$`, 'm'))
})
