import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { anApproval, anIncident, type StandIn, startStandIn } from './api-stand-in.ts'
import { emptyDir, runCli, startCli, tokenFile, until } from './run-cli.ts'

let api: StandIn
let env: Record<string, string>
beforeAll(async () => {
  api = await startStandIn()
  env = { NIGHTSHIFT_URL: api.url, NIGHTSHIFT_TOKEN_FILE: tokenFile('admin-token') }
})
beforeEach(() => {
  api.incidents.length = 0
  api.events.length = 0
  api.approvals.length = 0
  api.requests.length = 0
  api.settings.length = 0
  api.world.mute = false
  Object.assign(api.chain, { ok: true, events: 7, headHash: 'ab'.repeat(32), problem: null })
})
afterAll(() => api.stop())

// ESC and CSI, a bell, a right-to-left override, a zero-width space, and an OSC that would rename the window.
const hostile = 'a\u001b[2Jb\u009b31mc\u0007d\u202ee\u200bf\u001b]0;pwned\u0007\nnext line'
/** The first character that a terminal would act on, or null. */
function harmfulIn(text: string): string | null {
  return [...text].find((each) => each !== '\n' && /[\p{Cc}\p{Cf}]/u.test(each)) ?? null
}

describe('what a script relies on', () => {
  const nothing = { NIGHTSHIFT_URL: '', NIGHTSHIFT_TOKEN_FILE: '' }
  test.each<[string, number, string[], Record<string, string>?]>([
    ['a list is a success', 0, ['incidents', 'list']],
    ['help is a success', 0, ['incidents', '--help']],
    ['nothing runs here', 1, ['incidents', 'list'], nothing],
    ['the API is not there', 1, ['incidents', 'list'], { NIGHTSHIFT_URL: 'http://127.0.0.1:9' }],
    ['a command that does not exist', 2, ['incidence']],
    ['a flag that does not exist', 2, ['incidents', 'list', '--no-such-flag']],
    ['a status that does not exist', 2, ['incidents', 'list', '--status', 'closed']],
    ['a missing argument', 2, ['incidents', 'show']],
    ['a denial without a reason', 2, ['approvals', 'deny', 'apr_1']],
    ['a denial with an empty reason', 2, ['approvals', 'deny', 'apr_1', '--reason', ' ']],
    ['a setting that does not parse', 2, ['config', 'set', 'agent.max_turns', 'many']],
    ['an incident that does not exist', 3, ['incidents', 'show', 'inc_none']],
    ['an approval that does not exist', 3, ['approvals', 'approve', 'apr_none']],
    ['a setting that does not exist', 3, ['config', 'get', 'agent.nothing']],
    ['no token', 4, ['incidents', 'list'], { NIGHTSHIFT_TOKEN_FILE: '' }],
    ['a token file that cannot be read', 4, ['incidents', 'list', '--token-file', '/nonexistent']],
    ['an unknown token', 4, ['incidents', 'list'], { NIGHTSHIFT_TOKEN_FILE: '', NIGHTSHIFT_TOKEN: 'wrong' }],
    ['an approval that somebody else decided', 5, ['approvals', 'approve', 'apr_denied']],
    ['an incident that is closed', 5, ['incidents', 'cancel', 'inc_closed', '--reason', 'x']],
    ['an approval that has expired', 6, ['approvals', 'approve', 'apr_expired']],
    ['a watched approval that was denied', 6, ['approvals', 'watch', 'apr_denied']],
    ['a watched incident that was escalated', 7, ['incidents', 'watch', 'inc_closed']],
    ['a wait that takes too long', 124, ['incidents', 'watch', 'inc_1', '--timeout', '0.5']],
  ])('%s: %i', async (_, code, args, more = {}) => {
    api.incidents.push(
      anIncident(),
      anIncident({ id: 'inc_closed', status: 'escalated', closedAt: new Date().toISOString(), events: 1 }),
    )
    api.append('inc_1', 'claimed', { role: 'leader' })
    api.append('inc_closed', 'escalated', { reason: 'no idea', code: 'MODEL', severity: 'critical' })
    api.approvals.push(
      anApproval({ id: 'apr_denied', status: 'denied' }),
      anApproval({ id: 'apr_expired', status: 'expired' }),
    )
    const ended = await runCli(args, { ...env, ...more })
    expect({ ...ended, stdout: '' }).toMatchObject({ code })
    if (code !== 0 && code !== 7 && code !== 6) expect(ended.stderr).not.toBe('')
    expect(ended.stderr).not.toContain('    at ')
  })

  test('Ctrl-C ends a watch at once, with 130', async () => {
    api.incidents.push(anIncident())
    const { child, ended } = startCli(['incidents', 'watch', 'inc_1'], env)
    await until('it listens', () => api.listeners.size > 0)
    child.kill('SIGINT')
    expect((await ended).code).toBe(130)
  })

  test('a problem of the API is told as it is, with what to do about it', async () => {
    const person = await runCli(['incidents', 'show', 'inc_none'], env)
    expect(person.stderr).toContain('Not found: there is no incident inc_none')
    expect(person.stderr).toContain('nightshift incidents list')
    const program = await runCli(['incidents', 'show', 'inc_none', '--json'], env)
    expect(program.stdout).toBe('')
    expect(JSON.parse(program.stderr)).toMatchObject({ title: 'Not found', status: 404, code: 'NOT_FOUND' })
  })

  test('a token is taken from the flag before the environment, and shows nowhere', async () => {
    const { stdout, stderr } = await runCli(
      ['incidents', 'list', '--json', '--token-file', tokenFile('approver-token')],
      env,
    )
    expect(api.requests[0]?.token).toBe('approver-token')
    expect(stdout + stderr).not.toContain('approver-token')
  })

  test('every command has a line about itself and an example', async () => {
    const groups = ['incidents', 'approvals', 'config', 'ingest', 'lab']
    const helps = await Promise.all(groups.map((group) => runCli([group, '--help'])))
    const commands = helps.flatMap(({ stdout }, index) =>
      [...stdout.matchAll(/^ {2}([a-z]+) (?=\[options\]|<|\[)/gm)]
        .map(([, name = '']) => [groups[index] ?? '', name])
        .filter(([, name]) => name !== 'help'),
    )
    expect(commands.length).toBeGreaterThan(20)
    const each = [...commands, ['start'], ['status'], ['doctor'], ['ask']]
    for (const { stdout } of await Promise.all(each.map((words) => runCli([...words, '--help'])))) {
      expect(stdout).toMatch(/^Usage: .*\n\n\S.*/)
      expect(stdout).toContain('Example:')
    }
  })
})

describe('incidents', () => {
  test('a list fits eighty columns and says severity and status in words', async () => {
    api.incidents.push(
      anIncident({ id: 'inc_01k0000000000000000000000z', title: 'x'.repeat(300), status: 'awaiting_approval' }),
    )
    const { stdout } = await runCli(['incidents', 'list'], env)
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    expect(stdout).toMatch(/inc_01k0+z +critical +awaiting_approval/)
  })

  test('a list for programs has every incident of every page, and whole', async () => {
    for (let n = 1; n <= 130; n++) api.incidents.push({ ...anIncident({ id: `inc_${n}` }), future: n } as never)
    const { stdout } = await runCli(['incidents', 'list', '--json', '--limit', '120'], env)
    const items = JSON.parse(stdout)
    expect(items).toHaveLength(120)
    expect(items[119]).toMatchObject({ id: 'inc_120', future: 120 })
  })

  test('text of an alert cannot act on the terminal', async () => {
    api.incidents.push(anIncident({ title: hostile, resource: { kind: 'shard', id: hostile }, resolution: hostile }))
    api.append('inc_1', 'alert_received', {}, { detail: hostile, actor: `source:${hostile}` })
    api.append('inc_1', 'commented', { text: hostile }, { detail: hostile })
    api.approvals.push(anApproval({ reason: hostile, tool: hostile, arguments: { [hostile]: hostile } }))
    api.chain.problem = { seq: 2, what: hostile }
    api.chain.ok = false
    const commands = ['list', 'show inc_1', 'show inc_1 --full', 'show inc_1 --json', 'verify inc_1'].map(
      (each) => `incidents ${each}`,
    )
    for (const command of [
      ...commands,
      'approvals list',
      'approvals show apr_1',
      'approvals show apr_1 --json',
      'status',
    ]) {
      const { stdout, stderr } = await runCli(command.split(' '), env)
      expect([command, harmfulIn(stdout + stderr)]).toEqual([command, null])
    }
    const { stdout } = await runCli(['incidents', 'show', 'inc_1', '--json'], env)
    expect(JSON.parse(stdout).incident.title).toBe(hostile)
  })

  test('a shown incident has a row per event, over all pages of its log', async () => {
    api.incidents.push(anIncident())
    api.append('inc_1', 'claimed', { role: 'leader' })
    for (let n = 0; n < 7; n++) {
      api.append('inc_1', 'tool_finished', {
        ...{ tool: 'list_nodes_by_shard', arguments: { shard_id: 'db-osl-1' }, outcome: 'done', durationMs: 12 },
        result: { ok: true, data: { items: [{ id: 'b', status: 'critical', reason: '42 s behind' }] }, meta: {} },
      })
    }
    const { stdout } = await runCli(['incidents', 'show', 'inc_1'], env)
    const rows = stdout.split('\n').filter((line) => /^\d+ +\+0:0/.test(line))
    expect(rows).toHaveLength(8)
    expect(rows[7]).toContain('list_nodes_by_shard')
    const full = await runCli(['incidents', 'show', 'inc_1', '--full'], env)
    expect(full.stdout).toContain('b is critical (42 s behind)')
  })

  test('a chain that holds says over how many rows; one that does not says where', async () => {
    api.incidents.push(anIncident())
    const good = await runCli(['incidents', 'verify', 'inc_1', '--head', 'abc'], env)
    expect(good).toMatchObject({ code: 0 })
    expect(good.stdout).toContain('7 rows')
    expect(good.stdout).toContain('ab'.repeat(32))
    expect(api.requests[0]?.path).toBe('/api/v1/incidents/inc_1/verify?head=abc')
    Object.assign(api.chain, { ok: false, problem: { seq: 4, what: 'its content is not what was hashed' } })
    const bad = await runCli(['incidents', 'verify', 'inc_1'], env)
    expect(bad).toMatchObject({ code: 1 })
    expect(bad.stderr).toContain('row 4: its content is not what was hashed')
  })

  test('a watch over a broken stream loses no row and shows none twice', async () => {
    api.incidents.push(anIncident())
    api.append('inc_1', 'claimed', { role: 'leader' })
    const { said, ended } = startCli(['incidents', 'watch', 'inc_1', '--json'], env)
    const lines = () => said.stdout.split('\n').filter(Boolean).length
    await until('the backlog', () => lines() === 1 && api.listeners.size === 1)
    api.append('inc_1', 'commented', { text: 'live' })
    await until('a live row', () => lines() === 2)
    api.dropStreams()
    api.append('inc_1', 'commented', { text: 'while nobody listened' })
    await until('it is back', () => api.listeners.size === 1)
    // A message that never arrives: the next one shows the gap.
    api.world.mute = true
    api.append('inc_1', 'commented', { text: 'swallowed' })
    api.world.mute = false
    api.incidents[0]!.status = 'resolved'
    api.append('inc_1', 'resolved', { outcome: 'repaired', resolution: 'done' })
    const { code, stdout } = await ended
    expect(code).toBe(0)
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).seq),
    ).toEqual([1, 2, 3, 4, 5])
    expect(api.requests.filter(({ path }) => path.includes('/stream')).at(-1)?.lastEventId).toBe('1-1')
  })

  test('an export goes to a file byte by byte', async () => {
    api.incidents.push(anIncident())
    api.world.exportText = `# ${hostile}\n`
    const { stdout } = await runCli(['incidents', 'export', 'inc_1'], env)
    expect(stdout).toBe(api.world.exportText)
    expect((await runCli(['incidents', 'export', 'inc_1', '-o', `${emptyDir}/x.md`], env)).code).toBe(0)
  })
})

describe('approvals', () => {
  test('a card shows what moves where, why, the arguments and the expiry', async () => {
    api.approvals.push(anApproval())
    const { stdout } = await runCli(['approvals', 'show', 'apr_1'], env)
    expect(stdout).toMatch(/1 +start +vm-101 +host-osl-1 +→ host-osl-3/)
    expect(stdout).toMatch(/2 +migrate +vm-107 +host-osl-3 +→ host-osl-2/)
    for (const part of ['high, reversible', 'host-osl-1 is dead', '"proposal_id":"prp_1"', 'in 10 min', '0 of 1']) {
      expect(stdout).toContain(part)
    }
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  })

  test('to approve is to mint a token and to decide with it, unseen', async () => {
    api.approvals.push(anApproval())
    const { code, stdout, stderr } = await runCli(['approvals', 'approve', 'apr_1'], env)
    expect(code).toBe(0)
    expect(stderr).toContain('apr_1 is approved')
    expect(stdout + stderr).not.toContain('ndt_secret')
    expect(api.approvals[0]?.decisions[0]).toMatchObject({ decision: 'approve' })
  })

  test('a denial carries its reason', async () => {
    api.approvals.push(anApproval())
    await runCli(['approvals', 'deny', 'apr_1', '--reason', 'host-osl-2 is being replaced'], env)
    expect(api.approvals[0]?.decisions[0]).toMatchObject({ decision: 'deny', reason: 'host-osl-2 is being replaced' })
  })

  test('a printed token is alone on stdout, and stderr has the command that uses it', async () => {
    api.approvals.push(anApproval())
    const { stdout, stderr } = await runCli(['approvals', 'token', 'apr_1'], {
      ...env,
      TEMPORAL_ADDRESS: '127.0.0.1:7999',
    })
    expect(stdout).toBe('ndt_secret\n')
    expect(stderr.replace(/ \\\n +/g, ' ')).toContain(
      `temporal workflow signal --address 127.0.0.1:7999 --workflow-id investigate:inc_1:2 --name approve --input '{"token":"ndt_secret"}'`,
    )
  })

  test('a watched approval ends the watch when it is decided', async () => {
    api.approvals.push(anApproval())
    const { ended } = startCli(['approvals', 'watch', 'apr_1'], env)
    await until('it asks', () => api.requests.length > 0)
    api.approvals[0]!.status = 'approved'
    expect(await ended).toMatchObject({ code: 0, stdout: 'apr_1 is approved.\n' })
  })
})

describe('the rest', () => {
  test('a setting is changed only as it was last seen', async () => {
    api.settings.push({ key: 'agent.paused', value: 'false', version: 3 })
    expect((await runCli(['config', 'set', 'agent.paused', 'true'], env)).code).toBe(0)
    expect(api.requests.at(-1)).toMatchObject({ method: 'PUT' })
    expect((await runCli(['config', 'get', 'agent.paused'], env)).stdout).toBe('false\n')
  })

  test('a status counts what is open and names what waits for a person', async () => {
    api.incidents.push(anIncident(), anIncident({ id: 'inc_2', status: 'awaiting_approval' }))
    api.approvals.push(anApproval())
    const { stdout } = await runCli(['status'], env)
    expect(stdout).toMatch(/1 +investigating/)
    expect(stdout).toContain('approvals show apr_1')
  })

  test('a posted alert needs the ingest token and says what became of it', async () => {
    const file = 'test/data/alertmanager/replication-lag.json'
    const { code, stdout } = await runCli(['ingest', 'test', file], {
      ...env,
      NIGHTSHIFT_TOKEN_FILE: tokenFile('ingest-token'),
    })
    expect(code).toBe(0)
    expect(stdout).toMatch(/f1 +opened +inc_1/)
    expect((await runCli(['ingest', 'test', file], env)).code).toBe(4)
  })

  test.each([
    ['replication-lag.json', 1],
    ['disk-pressure-group-of-3.json', 3],
    ['mixed-one-resolved-two-firing.json', 3],
    ['hostile-labels.json', 1],
    ['no-severity-no-instance.json', 1],
  ])('%s is %i alerts, and nothing is posted', async (file, alerts) => {
    const args = ['ingest', 'test', `test/data/alertmanager/${file}`, '--dry-run']
    const person = await runCli(args)
    expect(person).toMatchObject({ code: 0 })
    expect(person.stderr).toContain(`${alerts} alerts. Nothing was posted.`)
    expect(harmfulIn(person.stdout)).toBeNull()
    expect(JSON.parse((await runCli([...args, '--json'])).stdout)).toHaveLength(alerts)
  })

  test('bytes that are no alert are refused with the reason', async () => {
    const { code, stderr } = await runCli(['ingest', 'test', '-', '--dry-run'], {}, '{"alerts": 1')
    expect(code).toBe(1)
    expect(stderr).toContain('no alertmanager alerts')
  })

  test('a doctor without anything running says what to do, and fails', async () => {
    const { code, stdout } = await runCli(['doctor'])
    expect(code).toBe(1)
    expect(stdout).toContain('npm start')
    const wrong = await runCli(['doctor', '--json'], { LLM_MAX_TURNS: 'many', PORT: '99999' })
    const found = JSON.parse(wrong.stdout).find((each: { name: string }) => each.name === 'Configuration')
    expect(found).toMatchObject({ ok: false, needed: true })
    expect(found.detail).toContain('LLM_MAX_TURNS')
    expect(found.detail).toContain('PORT')
  })
})
