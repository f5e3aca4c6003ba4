import { execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import type { Command } from 'commander'
import { buildProgram } from '../../cli/program.ts'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { asked } from '../support/announced.ts'
import { claimedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { runCli, startCli, useServedApi } from '../support/run-cli.ts'

describe('judge', () => {
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
})

describe('exit codes', () => {
  const api = useServedApi()

  /** An incident that was handed to a person. */
  async function escalated(): Promise<string> {
    const id = await claimedIncident(api.db)
    const closing = { status: 'escalated', reason: 'no idea', code: 'MODEL' } as const
    await api.db.transaction().execute((trx) => closeIncident(trx, id, 1, closing, { actor: 'agent:x', stepKey: null }))
    return id
  }

  test('a script can tell by the exit code how a command ended', async () => {
    const open = await claimedIncident(api.db)
    const closed = await escalated()
    const denied = await asked(api.db, await claimedIncident(api.db))
    const late = await asked(api.db, await claimedIncident(api.db), { expirySeconds: 1 })
    const admin = api.as('admin')
    await runCli(['approvals', 'deny', denied, '--reason', 'not tonight'], admin)
    const alert = 'test/data/alertmanager/replication-lag.json'
    const nowhere = { NIGHTSHIFT_URL: '', NIGHTSHIFT_TOKEN_FILE: '' }
    const cases: [string, number, string[], Record<string, string>?][] = [
      ['a list', 0, ['incidents', 'list']],
      ['help', 0, ['incidents', '--help']],
      ['nothing runs here', 1, ['incidents', 'list'], nowhere],
      ['the API is not there', 1, ['incidents', 'list'], { NIGHTSHIFT_URL: 'http://127.0.0.1:9' }],
      ['a command that does not exist', 2, ['incidence']],
      ['a flag that does not exist', 2, ['incidents', 'list', '--no-such-flag']],
      ['a status that does not exist', 2, ['incidents', 'list', '--status', 'closed']],
      ['a missing argument', 2, ['incidents', 'show']],
      ['a denial without a reason', 2, ['approvals', 'deny', denied]],
      ['a denial with an empty reason', 2, ['approvals', 'deny', denied, '--reason', ' ']],
      ['a setting that does not parse', 2, ['config', 'set', 'agent.max_turns', 'many']],
      ['an incident that does not exist', 3, ['incidents', 'show', 'inc_none']],
      ['an approval that does not exist', 3, ['approvals', 'approve', 'apr_none']],
      ['a setting that does not exist', 3, ['config', 'get', 'agent.nothing']],
      ['no token', 4, ['incidents', 'list'], { NIGHTSHIFT_TOKEN_FILE: '' }],
      ['a token file that cannot be read', 4, ['incidents', 'list', '--token-file', '/nonexistent']],
      ['an unknown token', 4, ['incidents', 'list'], { NIGHTSHIFT_TOKEN_FILE: '', NIGHTSHIFT_TOKEN: 'wrong' }],
      ['a role that may not', 4, ['ingest', 'test', alert], api.as('viewer')],
      ['somebody else decided', 5, ['approvals', 'approve', denied]],
      ['the incident is closed', 5, ['incidents', 'cancel', closed, '--reason', 'enough']],
      ['the approval has expired', 6, ['approvals', 'approve', late]],
      ['a watched approval was denied', 6, ['approvals', 'watch', denied]],
      ['a watched incident was escalated', 7, ['incidents', 'watch', closed]],
      ['a wait that takes too long', 124, ['incidents', 'watch', open, '--timeout', '0.5']],
    ]
    const ended = await Promise.all(
      cases.map(async ([name, , args, env]) => [name, await runCli(args, { ...admin, ...env })] as const),
    )
    expect(ended.map(([name, { code }]) => [name, code])).toEqual(cases.map(([name, code]) => [name, code]))
    for (const [name, { code, stderr }] of ended) {
      if (code !== 0 && code !== 6) expect([name, stderr]).not.toEqual([name, ''])
      // No stack: a failure of ours that nobody told as one.
      expect(stderr).not.toContain('    at ')
    }
  })

  test('Ctrl-C ends a watch with 130, whatever it waits for', async () => {
    const incident = await claimedIncident(api.db)
    const approval = await asked(api.db, incident)
    const watches = [
      ['incidents', 'watch', incident],
      ['incidents', 'watch'],
      ['approvals', 'watch', approval],
    ]
    const started = watches.map((args) => startCli(args, api.as('admin')))
    await eventually('they listen', () => api.listeners() === 2)
    await eventually('it asks', () => api.requests.some((each) => each.asked === `GET /api/v1/approvals/${approval}`))
    for (const { child } of started) child.kill('SIGINT')
    for (const { ended } of started) expect((await ended).code).toBe(130)
  })

  test('a problem is told with what to do about it, to a program as problem+json', async () => {
    const [person, program] = await Promise.all([
      runCli(['incidents', 'show', 'inc_none'], api.as('admin')),
      runCli(['incidents', 'show', 'inc_none', '--json'], api.as('admin')),
    ])
    expect(person.stderr).toContain('inc_none')
    expect(person.stderr).toContain('nightshift incidents list')
    expect(program.stdout).toBe('')
    expect(JSON.parse(program.stderr)).toMatchObject({ status: 404, code: 'NOT_FOUND' })
  })
})

describe('help', () => {
  test('every command has a line about itself and an example', async () => {
    const leaves = (command: Command): Command[] => [command, ...command.commands.flatMap((each) => leaves(each))]
    const commands = leaves(await buildProgram())
    expect(commands.length).toBeGreaterThan(30)
    for (const command of commands) {
      let help = ''
      command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp()
      expect(help).toMatch(/^Usage: .*\n\n\S.*/)
      expect(help).toContain('Example:')
    }
  })

  test('one command is loaded without the others, and knows as much', async () => {
    const one = (await buildProgram('incidents')).commands
    expect(one.map((command) => command.name())).toEqual(['incidents'])
    const all = (await buildProgram()).commands.find((command) => command.name() === 'incidents')
    expect(one[0]?.helpInformation()).toBe(all?.helpInformation())
  })

  test('help names every command, and the exit codes', async () => {
    const [help, codes] = await Promise.all([runCli(['--help']), runCli(['help', 'exit-codes'])])
    for (const name of ['start', 'status', 'doctor', 'incidents', 'approvals', 'ask', 'config', 'ingest', 'lab']) {
      expect(help.stdout).toMatch(new RegExp(`^ {2}${name}\\b`, 'm'))
    }
    expect(codes.stdout).toMatch(/130 +Ctrl-C/)
  })

  test('the version is that of the package', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    expect(await runCli(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` })
  })

  async function completed(words: string[]): Promise<string[]> {
    const { stdout } = await runCli(['completion', 'bash'])
    const script = `${stdout}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _nightshift; printf '%s\\n' "\${COMPREPLY[@]}"`
    return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n')
  }

  test('bash completes commands, what stands below them, and their options', async () => {
    expect(await completed(['nightshift', 'app'])).toEqual(['approvals'])
    expect(await completed(['nightshift', 'approvals', ''])).toEqual(
      expect.arrayContaining(['list', 'show', 'approve', 'deny', 'wait']),
    )
    expect(await completed(['nightshift', 'approvals', 'approve', 'apr_1', '--ed'])).toEqual(['--edit'])
    expect(await completed(['nightshift', 'config', 'set', '--rea'])).toEqual(['--reason'])
  })

  test('fish is offered the same words as bash', async () => {
    const { stdout } = await runCli(['completion', 'fish'])
    expect(stdout).toMatch(/^complete --command nightshift /m)
    for (const [, path, words] of (await runCli(['completion', 'bash'])).stdout.matchAll(
      /^ +'(.*)'\) words='(.*)' ;;$/gm,
    )) {
      expect(stdout).toContain(`case '${path}'\n                set words ${words}\n`)
    }
  })
})
