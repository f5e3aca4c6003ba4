import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { type Closing, closeIncident } from '../../../db/incidents/close-incident.ts'
import { append } from '../../../db/log/append.ts'
import { publishLiveAnswer } from '../../../db/log/live.ts'
import { agentActor, type EventKind, type NewEvent } from '../../../domain/event.ts'
import { claimed } from '../../db/verify/life.ts'
import { asked } from '../../support/announced.ts'
import { claimedIncident, openedIncident, storeSetting } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'
import {
  emptyDir,
  harmfulIn,
  hostile,
  runAtTerminal,
  runCli,
  startCli,
  tokenFile,
  useServedApi,
} from '../../support/run-cli.ts'

const api = useServedApi()
const run = (command: string, env = api.as('admin')) => runCli(command.split(' '), env)

function record<K extends EventKind>(id: string, event: Omit<NewEvent<K>, 'actor' | 'detail'> & { detail?: string }) {
  const whole = { actor: agentActor, detail: event.kind, ...event } as NewEvent<K>
  return api.db.transaction().execute((trx) => append(trx, id, 1, whole))
}

const looked = {
  kind: 'tool_finished',
  metadata: {
    callId: 'c1_0',
    tool: 'list_nodes_by_shard',
    arguments: { shard_id: 'db-osl-1' },
    outcome: 'done',
    durationMs: 12,
    effect: 'read',
    result: { ok: true, data: { items: [{ id: 'b', status: 'critical', reason: '42 s behind' }] }, meta: {} },
  },
} as never

test('a list fits the terminal with states in words, and a pipe gets every cell whole, a line per row', async () => {
  const title = `Replication lag on db-osl-1 ${'x'.repeat(200)}`
  const id = await openedIncident(api.db, { title, severity: 'critical' })
  const { shown } = await runAtTerminal(['incidents', 'list'], api.as('admin'))
  for (const line of shown.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  expect(shown).toMatch(
    new RegExp(`^${id.slice(4, 12)}[0-9a-z]* +critical +open +\\d.* Replication lag on db-osl-1 xxx`, 'm'),
  )
  const { stdout } = await run('incidents list')
  expect(stdout).toMatch(new RegExp(`^${id} +critical +open +\\d.* +${title}$`, 'm'))
})

test('home shows what needs the reader, what is at work and what is done, and a search finds rows by their words', async () => {
  const waiting = await claimedIncident(api.db, { name: 'host_down', title: 'Host h-home is down' })
  const approval = await asked(api.db, waiting)
  for (let n = 0; n < 5; n += 1) {
    const labels = { alertname: 'PodStorm' }
    await openedIncident(api.db, { name: 'PodStorm', labels, title: `Pod ${n} restarts` })
  }
  const { shown } = await runAtTerminal(['home'], api.as('admin'))
  for (const line of shown.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  expect(shown).toMatch(new RegExp(`Needs you \\d+[^]*${approval.slice(4, 12)}[^]*Host h-home is down[^]*In progress`))
  const { stdout } = await run('home --since 1h')
  expect(stdout).toMatch(/pod_storm × 5: 5 queued/)
  expect((await run('home --since yesterday')).code).toBe(2)
  await run(`incidents note ${waiting} the_elephant_sat_on_h-home`)
  expect((await run('search the_elephant')).stdout).toMatch(new RegExp(`log +${waiting} .*: the_elephant_sat`))
  expect((await run('search nothing_like_it_anywhere')).stderr).toContain('Nothing found for')
  const mine = await run('incidents list --owner me --since 1h --json')
  expect(JSON.parse(mine.stdout)).toEqual([])
})

test('the beginning of an id is enough if only one id begins so, otherwise all of them are listed', async () => {
  const one = await openedIncident(api.db, { name: 'first_of_two' })
  await openedIncident(api.db, { name: 'second_of_two' })
  const noted = await run(`incidents note ${one.slice(4, 26)} called_the_supplier`)
  expect(noted.stderr).toMatch(new RegExp(`Row \\d+ of ${one}`))
  expect((await run(`incidents show ${one.slice(0, 26)} --full`)).stdout).toContain('called_the_supplier')
  const several = await run('incidents show inc_0')
  expect(several.code).toBe(2)
  expect(several.stderr).toMatch(/"inc_0" matches several ids: inc_\w{26}, inc_\w{26}/)
  expect((await run('incidents show inc_nothing')).code).toBe(3)
})

test('a person sends a message to a run, and sees which turn read it, and without a run sees the alternative', async () => {
  const id = await claimedIncident(api.db, { name: 'told', labels: { alertname: 'told' } })
  const told = await run(`incidents tell ${id} look_at_vm-7`)
  expect(told.stderr).toMatch(/Row (\d+) of inc_\w+\. The agent reads the message in its next turn\./)
  expect((await run(`incidents show ${id}`)).stdout).toContain('look_at_vm-7 (to the agent, not read yet)')
  const read = [Number(/Row (\d+)/.exec(told.stderr)?.[1])]
  const usage = { promptTokens: 1, completionTokens: 1 }
  const answer = { content: 'I look', body: null, calls: [], final: null, problem: null, usage, model: 'm', read }
  await record(id, { kind: 'model_answered', turn: 4, metadata: { ...answer, finishReason: 'stop', durationMs: 1 } })
  const hypothesis = {
    id: 'h1',
    text: 'The disk is full',
    state: 'supported' as const,
    quotes: [{ seq: 1, text: 'firing' }],
  }
  const comment = { text: 'x', confidence: null, action: 'investigated', hypothesis }
  await record(id, { kind: 'commented', metadata: comment })
  const { stdout } = await run(`incidents show ${id}`)
  expect(stdout).toContain('look_at_vm-7 (to the agent, read in turn 4)')
  expect(stdout).toMatch(/Possible causes\n +h1 quoted: The disk is full \(#1\)/)
  const open = await openedIncident(api.db, { name: 'untold', labels: { alertname: 'untold' } })
  const refused = await run(`incidents tell ${open} hello`)
  expect([refused.code !== 0, refused.stderr]).toEqual([true, expect.stringContaining('Add a note')])
})

test('a list for programs has every incident of every page, whole', async () => {
  await Promise.all(Array.from({ length: 110 }, () => openedIncident(api.db, { name: 'many_pages' })))
  const { stdout } = await run('incidents list --json --type many_pages --limit 105')
  const items = JSON.parse(stdout)
  expect(items).toHaveLength(105)
  expect(new Set(items.map(({ id }: { id: string }) => id)).size).toBe(105)
  expect(items[104]).toMatchObject({ type: 'many_pages', severitySource: 'alert', attempt: 0 })
})

test('foreign text cannot act on the terminal', async () => {
  const id = await claimedIncident(api.db, {
    name: 'hostile',
    title: hostile,
    labels: { alertname: 'hostile', node: hostile },
  })
  await record(id, { kind: 'commented', detail: hostile, metadata: { text: hostile, confidence: null } } as never)
  const approval = await asked(api.db, id, { tool: hostile, identity: { [hostile]: hostile } })
  const commands = [
    ...['list', `show ${id}`, `show ${id} --full`, `show ${id} --json`].map((each) => `incidents ${each}`),
    ...['list', `show ${approval}`, `show ${approval} --json`].map((each) => `approvals ${each}`),
    'status',
  ]
  const ended = await Promise.all(commands.map((each) => run(each)))
  expect(ended.map(({ stdout, stderr }, index) => [commands[index], harmfulIn(stdout + stderr)])).toEqual(
    commands.map((each) => [each, null]),
  )
  // What would act on a terminal was taken out before it was stored; what is readable stays.
  expect(JSON.parse(ended[3]?.stdout ?? '').incident.title).toContain('abcdef')
})

test('an incident is readable from top to bottom in eighty columns, over all pages of its log', async () => {
  const id = await claimedIncident(api.db)
  for (let n = 0; n < 210; n++) await record(id, looked)
  const [shown, full] = await Promise.all([run(`incidents show ${id}`), run(`incidents show ${id} --full`)])
  for (const line of shown.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  expect(shown.stdout.match(/^ +\d+ +\+\d+:\S+ +list_nodes_by_shard/gm)).toHaveLength(210)
  expect(shown.stdout.replace(/\s+/g, ' ')).toContain(
    'list_nodes_by_shard db-osl-1 done: 1 found, b is critical (42 s behind)',
  )
  expect(full.stdout).toContain('"shard_id": "db-osl-1"')
})

test('a valid chain prints its number of rows, and an invalid chain prints the place', async () => {
  const id = await openedIncident(api.db)
  await api.db.transaction().execute((trx) => claimed(trx, id))
  const { event } = await record(id, looked)
  const good = await run(`incidents verify ${id} --head ${event.hash}`)
  expect(good.code).toBe(0)
  expect(good.stdout).toContain(`${event.seq} rows`)
  expect(good.stdout).toContain(event.hash)
  await sql`alter table incident_event disable trigger all`.execute(api.owner)
  await api.owner
    .updateTable('incidentEvent')
    .set({ detail: 'forged' })
    .where('id', '=', event.id as never)
    .execute()
  await sql`alter table incident_event enable trigger all`.execute(api.owner)
  const bad = await run(`incidents verify ${id}`)
  expect(bad.code).toBe(1)
  expect(bad.stderr).toContain(`row ${event.seq}: the content of the row differs from its hash`)
})

test('a watch at a terminal shows which model answers, for how long and its last words, and leaves the terminal intact', async () => {
  const id = await claimedIncident(api.db)
  const live = {
    incidentId: id,
    attempt: 1,
    turn: 3,
    maxTurns: 10,
    model: 'qwen',
    state: 'writing' as const,
    seconds: 14,
    tokens: 310,
    isCounted: false,
    tail: `the replica lags ${hostile}`,
  }
  const telling = setInterval(() => void publishLiveAnswer(api.db, live), 200)
  const enough = (shown: string) => shown.split('\r\u001b[K').length > 5 && shown.includes('qwen answers')
  const { shown } = await runAtTerminal(['incidents', 'watch', id], api.as('viewer'), '', enough)
  clearInterval(telling)
  expect(shown).toContain('qwen answers · 14 s · about 310 tokens · turn 3 of 10')
  expect(shown).toMatch(/next line/)
  // The line at the foot is written over: a return and an erasure of ours, and nothing of the
  // model's.
  const lines = shown.split('\r\u001b[K')
  expect(lines.length).toBeGreaterThan(3)
  for (const line of lines) {
    expect(harmfulIn(line)).toBeNull()
    expect(line.split('\n')[0]!.length).toBeLessThan(80)
  }
  const { stdout } = await run(`incidents watch ${id} --timeout 1`)
  expect(stdout).not.toContain('qwen answers')
})

test('a watch over a broken stream loses no row and shows none twice', async () => {
  const id = await claimedIncident(api.db)
  const { said, ended } = startCli(['incidents', 'watch', id, '--json'], api.as('admin'))
  const seqs = () =>
    said.stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line).seq)
  await eventually('the backlog', () => seqs().length === 1 && api.listeners() === 1)
  await record(id, looked)
  await eventually('a live row', () => seqs().length === 2)
  api.dropConnections()
  await record(id, looked)
  await eventually('what nobody listened to', () => seqs().length === 3)
  const closing: Closing = {
    status: 'resolved',
    resolution: 'done',
    outcome: 'repaired',
    confidence: null,
    claims: [],
  }
  await api.db.transaction().execute((trx) => closeIncident(trx, id, 1, closing, { actor: agentActor, stepKey: null }))
  expect((await ended).code).toBe(0)
  expect(seqs()).toEqual([1, 2, 3, 4])
  expect(api.requests.filter(({ asked }) => asked.includes(`/stream?incident=${id}`)).at(-1)?.lastEventId).toMatch(
    /^\d+-\d+$/,
  )
})

test('an incident is exported as JSON, CSV and a postmortem, to stdout or unchanged to a file', async () => {
  const id = await claimedIncident(api.db)
  const file = `${emptyDir}/postmortem.md`
  const [json, csv, md, written] = await Promise.all([
    run(`incidents export ${id} --format json`),
    run(`incidents export ${id} --format csv`),
    run(`incidents export ${id}`),
    run(`incidents export ${id} -o ${file}`),
  ])
  expect(JSON.parse(json.stdout).incident.id).toBe(id)
  expect(csv.stdout).toMatch(/^seq,at,/)
  expect(written.code).toBe(0)
  expect(readFileSync(file, 'utf8')).toBe(md.stdout)
})

test('a postmortem is shown in the terminal, written from a file under a name, and never over newer words', async () => {
  const id = await claimedIncident(api.db, { title: `Lag ${hostile}` })
  const { shown } = await runAtTerminal(['incidents', 'postmortem', id], api.as('admin'))
  for (const line of shown.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  expect([harmfulIn(shown.replaceAll('\u001b', '')), shown]).toEqual([null, expect.stringMatching(/Summary\n.*#1/s)])
  const file = `${emptyDir}/edited.md`
  const exported = (await run(`incidents postmortem ${id} --markdown`)).stdout
  const unchanged = await runCli(['incidents', 'postmortem', id, '--edit', '-'], api.as('operator'), exported)
  expect(unchanged.stderr).toContain('The file has no difference')
  writeFileSync(file, exported.replace('## Cause\n', '## Cause\n\nIt was the network.\n'))
  const written = await runCli(['incidents', 'postmortem', id, '--edit', file], api.as('operator'))
  expect([written.code, written.stderr]).toEqual([
    0,
    expect.stringContaining('Written: Cause. This is version 1 of the postmortem.'),
  ])
  expect((await run(`incidents postmortem ${id}`)).stdout).toMatch(/It was the network\.[\s\S]*Edited by operator at/)
  // The file says that it was exported before that.
  const late = await runCli(['incidents', 'postmortem', id, '--edit', file], api.as('approver'))
  writeFileSync(file, exported.replace('## Impact\n', '## Impact\n\nNone.\n'))
  const overtaken = await runCli(['incidents', 'postmortem', id, '--edit', file], api.as('approver'))
  expect([late.stderr, overtaken.code]).toEqual([expect.stringContaining('The file has no difference'), 5])
  expect(overtaken.stderr).toMatch(/is at version 1, by operator, and you saw version 0/)
  writeFileSync(file, '## Couse\n\nx')
  const wrong = await runCli(['incidents', 'postmortem', id, '--edit', file], api.as('operator'))
  expect([wrong.code, wrong.stderr]).toEqual([
    1,
    expect.stringContaining('"Couse" is not a section. Sections: Summary'),
  ])
  const none = await runCli(['incidents', 'postmortem', id, '--edit', `${file}.none`], api.as('operator'))
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining(`${file}.none`)])
})

test('a report fits the terminal, and is JSON or a file for a spreadsheet', async () => {
  await openedIncident(api.db, { labels: { incident_type: 'node_filesystem_almost_out_of_space_in_48_letter' } })
  for (const by of ['week', 'type']) {
    const { shown } = await runAtTerminal(['reports', '--by', by], api.as('viewer'))
    for (const line of shown.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    expect(shown).toMatch(/Auto-resolved +\d+ %|Auto-resolved +–/)
  }
  const [json, csv, wrong] = await Promise.all([
    run('reports --json --since 2026-01-01'),
    run('reports --csv'),
    run('reports --since 2026-02-30'),
  ])
  expect(JSON.parse(json.stdout)).toMatchObject({ since: '2026-01-01', total: { incidents: expect.any(Number) } })
  expect(csv.stdout).toMatch(/^line,name,incidents,[\s\S]*\r\ntype,node_filesystem_almost_out_of_space_in_48_letter,1,/)
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('since: is not a day such as 2026-11-21')])
})

test('a held page and an avoided page are on the incident and in the report', async () => {
  await storeSetting(api.owner, 'page.hold', '300')
  await storeSetting(api.owner, 'webhook.critical.url', 'http://127.0.0.1:9/critical')
  try {
    const title = `Disk full on ${'x'.repeat(100)}`
    const id = await claimedIncident(api.db, { severity: 'critical', title })
    expect((await run(`incidents show ${id}`)).stdout).toMatch(/page +Page held until \d\d:\d\d:\d\d UTC \(#\d+\)/)
    const text = 'No page: repaired in 37 s, alert ended'
    await record(id, { kind: 'noted', detail: text, metadata: { code: 'page_spared', text } })
    expect(JSON.parse((await run(`incidents show ${id} --json`)).stdout)).toMatchObject({ brief: { page: { text } } })
    const { shown } = await runAtTerminal(['reports'], api.as('viewer'))
    for (const line of shown.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    expect(shown).toMatch(/Wakes avoided +1 +of 1 held/)
    expect(shown).toContain(`${text}: Disk full`)
    expect(JSON.parse((await run('reports --json')).stdout)).toMatchObject({ spared: [{ incidentId: id, text }] })
  } finally {
    await sql`delete from platform_config`.execute(api.owner)
  }
})

test('a person ends an incident, or has it investigated again', async () => {
  const [running, open] = [await claimedIncident(api.db), await openedIncident(api.db)]
  const [asked, cancelled, escalated] = await Promise.all([
    runCli(['incidents', 'cancel', running, '--reason', 'planned maintenance'], api.as('operator')),
    runCli(['incidents', 'cancel', open, '--reason', 'planned maintenance'], api.as('operator')),
    runCli(['incidents', 'escalate', await openedIncident(api.db), '--reason', 'new hardware'], api.as('operator')),
  ])
  // Its run ends it: nothing has happened when the command returns.
  expect(asked.stderr).toContain('Requested. The run of')
  expect(cancelled.stderr).toContain('is cancelled')
  expect(escalated.stderr).toContain('is escalated')
  expect((await run(`incidents investigate ${open}`)).stderr).toContain('is open')
})

test('a question is sent to the agent, and its incident is printed', async () => {
  const answer = await runCli(
    ['ask', 'Is db-osl-1 well?', '--resource', 'shard:db-osl-1', '--no-wait'],
    api.as('operator'),
  )
  const { incident } = JSON.parse((await run(`incidents show ${answer.stdout.trim()} --json`)).stdout)
  expect(incident).toMatchObject({ type: 'question', resource: { kind: 'shard', id: 'db-osl-1' } })
})

test('a status counts open incidents and names what waits for a person', async () => {
  const approval = await asked(api.db, await claimedIncident(api.db))
  const { stdout } = await run('status')
  expect(stdout).toMatch(/\d+ +awaiting_approval/)
  expect(stdout).toContain(`approvals show ${approval}`)
})

test('a token is read from the flag before the environment, and is never printed', async () => {
  const flag = ['--token-file', tokenFile(api.tokens.viewer)]
  const { code, stdout, stderr } = await runCli(['incidents', 'list', '--json', ...flag], {
    ...api.as('admin'),
    NIGHTSHIFT_TOKEN: 'unknown',
  })
  expect(code).toBe(0)
  expect(stdout + stderr).not.toContain(api.tokens.viewer)
})

test('an open incident shows that it is queued, how many are before it, and why', async () => {
  const labels = { incident_type: 'queued_from_a_terminal' }
  await openedIncident(api.db, { labels })
  const id = await openedIncident(api.db, { labels })
  expect((await run(`incidents show ${id}`)).stdout).toMatch(/queue +Queued, \d+ ahead: \w+/)
})

test('a pasted id of an incident, or of an approval in it, finds the incident', async () => {
  const id = await claimedIncident(api.db)
  const approval = await asked(api.db, id)
  for (const q of [id, approval]) {
    const { items } = (await api.get(`/incidents?q=${q}`)).body as unknown as { items: { id: string }[] }
    expect(items.map((item) => item.id)).toEqual([id])
  }
})

test('times have their zone, and --utc prints them in UTC', async () => {
  const id = await openedIncident(api.db)
  const env = { ...api.as('viewer'), TZ: 'America/New_York' }
  expect((await run(`incidents show ${id}`, env)).stdout).toMatch(/created +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d -0[45]:00/)
  expect((await run(`incidents show ${id} --utc`, env)).stdout).toMatch(/created +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/)
})
