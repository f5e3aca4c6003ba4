import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { requestApproval } from '../../db/approvals/ask.ts'
import { type Closing, closeIncident } from '../../db/incidents/close-incident.ts'
import { append } from '../../db/log/append.ts'
import { tellLive } from '../../db/log/live.ts'
import { actionDigest } from '../../domain/digest.ts'
import { agentActor, type EventKind, type NewEvent } from '../../domain/event.ts'
import { asked } from '../api/announced.ts'
import { claimedIncident, openedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { emptyDir, harmfulIn, hostile, runAtTerminal, runCli, startCli, tokenFile, useServedApi } from './run-cli.ts'

describe('incidents', () => {
  const api = useServedApi()
  const run = (command: string, env = api.as('admin')) => runCli(command.split(' '), env)

  function record<K extends EventKind>(id: string, event: Omit<NewEvent<K>, 'actor' | 'detail'> & { detail?: string }) {
    const whole = { actor: agentActor, detail: event.kind, ...event } as NewEvent<K>
    return api.db.transaction().execute((trx) => append(trx, id, 1, whole))
  }

  const looked = {
    kind: 'tool_finished',
    metadata: {
      ...{ callId: 'c1_0', tool: 'list_nodes_by_shard', arguments: { shard_id: 'db-osl-1' }, outcome: 'done' },
      ...{ durationMs: 12, effect: 'read' },
      result: { ok: true, data: { items: [{ id: 'b', status: 'critical', reason: '42 s behind' }] }, meta: {} },
    },
  } as never

  test('a list fits the terminal and says states in words; into a pipe goes every cell whole, a line a row', async () => {
    const title = `Replication lag on db-osl-1 ${'x'.repeat(200)}`
    const id = await openedIncident(api.db, { title, severity: 'critical' })
    const { shown } = await runAtTerminal(['incidents', 'list'], api.as('admin'))
    for (const line of shown.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    expect(shown).toMatch(new RegExp(`${id} +critical +open`))
    expect(shown).toContain('  Replication lag on db-osl-1 xxx')
    const { stdout } = await run('incidents list')
    expect(stdout).toMatch(new RegExp(`^${id} +critical +open +\\d.* +${title}$`, 'm'))
  })

  test('home says what needs the reader, what is at work and what is done, and a search finds rows by their words', async () => {
    const waiting = await claimedIncident(api.db, { name: 'host_down', title: 'Host h-home is down' })
    const approval = await asked(api.db, waiting)
    for (let n = 0; n < 5; n += 1) {
      const labels = { alertname: 'PodStorm' }
      await openedIncident(api.db, { name: 'PodStorm', labels, title: `Pod ${n} restarts` })
    }
    const { shown } = await runAtTerminal(['home'], api.as('admin'))
    for (const line of shown.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    expect(shown).toMatch(new RegExp(`Needs you \\d+[^]*${approval}[^]*Host h-home is down[^]*In progress`))
    const { stdout } = await run('home --since 1h')
    expect(stdout).toMatch(/pod_storm × 5: 5 queued/)
    expect((await run('home --since yesterday')).code).toBe(2)
    await run(`incidents note ${waiting} the_elephant_sat_on_h-home`)
    expect((await run('search the_elephant')).stdout).toMatch(new RegExp(`log +${waiting} .*: the_elephant_sat`))
    expect((await run('search nothing_like_it_anywhere')).stderr).toContain('Nothing found for')
    const mine = await run('incidents list --owner me --since 1h --json')
    expect(JSON.parse(mine.stdout)).toEqual([])
  })

  test('the beginning of an id is enough where only one begins so, and all that do are named where not', async () => {
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

  test('a person tells a run something, and reads in which turn it was read; where no run works they read what to do', async () => {
    const id = await claimedIncident(api.db, { name: 'told', labels: { alertname: 'told' } })
    const told = await run(`incidents tell ${id} look_at_vm-7`)
    expect(told.stderr).toMatch(/Row (\d+) of inc_\w+\. Its next turn reads it\./)
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
    expect(stdout).toMatch(/What it may be\n +h1 supported: The disk is full \(#1\)/)
    const open = await openedIncident(api.db, { name: 'untold', labels: { alertname: 'untold' } })
    const refused = await run(`incidents tell ${open} hello`)
    expect([refused.code !== 0, refused.stderr]).toEqual([true, expect.stringContaining('Add a note')])
  })

  test('a list for programs has every incident of every page, and whole', async () => {
    await Promise.all(Array.from({ length: 110 }, () => openedIncident(api.db, { name: 'many_pages' })))
    const { stdout } = await run('incidents list --json --type many_pages --limit 105')
    const items = JSON.parse(stdout)
    expect(items).toHaveLength(105)
    expect(new Set(items.map(({ id }: { id: string }) => id)).size).toBe(105)
    expect(items[104]).toMatchObject({ type: 'many_pages', severitySource: 'alert', attempt: 0 })
  })

  test('text of strangers cannot act on the terminal', async () => {
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

  test('a shown incident reads from top to bottom in eighty columns, over all pages of its log', async () => {
    const id = await claimedIncident(api.db)
    for (let n = 0; n < 210; n++) await record(id, looked)
    const [shown, full] = await Promise.all([run(`incidents show ${id}`), run(`incidents show ${id} --full`)])
    for (const line of shown.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    expect(shown.stdout.match(/^ +\d+ +\+0:0\S+ +list_nodes_by_shard/gm)).toHaveLength(210)
    expect(shown.stdout.replace(/\s+/g, ' ')).toContain(
      'list_nodes_by_shard db-osl-1 done: 1 found, b is critical (42 s behind)',
    )
    expect(full.stdout).toContain('"shard_id": "db-osl-1"')
  })

  test('a chain that holds says over how many rows; one that does not says where', async () => {
    const id = await claimedIncident(api.db)
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
    expect(bad.stderr).toContain(`row ${event.seq}: its content is not what was hashed`)
  })

  test('a watch at a terminal says who answers, for how long and the last words, and harms no terminal', async () => {
    const id = await claimedIncident(api.db)
    const live = {
      ...{ incidentId: id, attempt: 1, turn: 3, maxTurns: 10, model: 'qwen', state: 'writing' as const },
      ...{ seconds: 14, tokens: 310, isCounted: false, tail: `the replica lags ${hostile}` },
    }
    const telling = setInterval(() => void tellLive(api.db, live), 200)
    const enough = (shown: string) => shown.split('\r\u001b[K').length > 5 && shown.includes('qwen answers')
    const { shown } = await runAtTerminal(['incidents', 'watch', id], api.as('viewer'), '', enough)
    clearInterval(telling)
    expect(shown).toContain('qwen answers · 14 s · about 310 tokens · turn 3 of 10')
    expect(shown).toMatch(/next line/)
    // The line at the foot is written over: a return and an erasure of ours, and nothing of the model's.
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
    await api.db
      .transaction()
      .execute((trx) => closeIncident(trx, id, 1, closing, { actor: agentActor, stepKey: null }))
    expect((await ended).code).toBe(0)
    expect(seqs()).toEqual([1, 2, 3, 4])
    expect(api.requests.filter(({ asked }) => asked.includes(`/stream?incident=${id}`)).at(-1)?.lastEventId).toMatch(
      /^\d+-\d+$/,
    )
  })

  test('an incident is exported as json, csv and a postmortem, to stdout or byte by byte to a file', async () => {
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

  test('a postmortem is read in the terminal, written from a file under a name, and not over words that came between', async () => {
    const id = await claimedIncident(api.db, { title: `Lag ${hostile}` })
    const { shown } = await runAtTerminal(['incidents', 'postmortem', id], api.as('admin'))
    for (const line of shown.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    expect([harmfulIn(shown.replaceAll('\u001b', '')), shown]).toEqual([null, expect.stringMatching(/Summary\n.*#1/s)])
    const file = `${emptyDir}/edited.md`
    const exported = (await run(`incidents postmortem ${id} --markdown`)).stdout
    const unchanged = await runCli(['incidents', 'postmortem', id, '--edit', '-'], api.as('operator'), exported)
    expect(unchanged.stderr).toContain('Nothing differs')
    writeFileSync(file, exported.replace('## Cause\n', '## Cause\n\nIt was the network.\n'))
    const written = await runCli(['incidents', 'postmortem', id, '--edit', file], api.as('operator'))
    expect([written.code, written.stderr]).toEqual([0, expect.stringContaining('Written: Cause. It is version 1.')])
    expect((await run(`incidents postmortem ${id}`)).stdout).toMatch(/It was the network\.[\s\S]*Edited by operator at/)
    // The file says that it was exported before that.
    const late = await runCli(['incidents', 'postmortem', id, '--edit', file], api.as('approver'))
    writeFileSync(file, exported.replace('## Impact\n', '## Impact\n\nNone.\n'))
    const overtaken = await runCli(['incidents', 'postmortem', id, '--edit', file], api.as('approver'))
    expect([late.stderr, overtaken.code]).toEqual([expect.stringContaining('Nothing differs'), 5])
    expect(overtaken.stderr).toMatch(/is at version 1, by operator; you saw version 0/)
    writeFileSync(file, '## Couse\n\nx')
    const wrong = await runCli(['incidents', 'postmortem', id, '--edit', file], api.as('operator'))
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('"Couse" is no section. Sections: Summary')])
    const none = await runCli(['incidents', 'postmortem', id, '--edit', `${file}.none`], api.as('operator'))
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining(`${file}.none`)])
  })

  test('a report fits the terminal, and is data or a file that a spreadsheet reads', async () => {
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
    expect(csv.stdout).toMatch(
      /^line,name,incidents,[\s\S]*\r\ntype,node_filesystem_almost_out_of_space_in_48_letter,1,/,
    )
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('since: is no day as 2026-11-21')])
  })

  test('a person ends an incident, or puts it before the agent again', async () => {
    const [running, open] = [await claimedIncident(api.db), await openedIncident(api.db)]
    const [asked, cancelled, escalated] = await Promise.all([
      runCli(['incidents', 'cancel', running, '--reason', 'planned maintenance'], api.as('operator')),
      runCli(['incidents', 'cancel', open, '--reason', 'planned maintenance'], api.as('operator')),
      runCli(['incidents', 'escalate', await openedIncident(api.db), '--reason', 'new hardware'], api.as('operator')),
    ])
    // Its run ends it: nothing has happened when the command returns.
    expect(asked.stderr).toContain('Requested; its run ends')
    expect(cancelled.stderr).toContain('is cancelled')
    expect(escalated.stderr).toContain('is escalated')
    expect((await run(`incidents investigate ${open}`)).stderr).toContain('is open')
  })

  test('a question is put to the agent, and the incident that holds it is named', async () => {
    const answer = await runCli(
      ['ask', 'Is db-osl-1 well?', '--resource', 'shard:db-osl-1', '--no-wait'],
      api.as('operator'),
    )
    const { incident } = JSON.parse((await run(`incidents show ${answer.stdout.trim()} --json`)).stdout)
    expect(incident).toMatchObject({ type: 'question', resource: { kind: 'shard', id: 'db-osl-1' } })
  })

  test('a status counts what is open and names what waits for a person', async () => {
    const approval = await asked(api.db, await claimedIncident(api.db))
    const { stdout } = await run('status')
    expect(stdout).toMatch(/\d+ +awaiting_approval/)
    expect(stdout).toContain(`approvals show ${approval}`)
  })

  test('a token is taken from the flag before the environment, and shows nowhere', async () => {
    const flag = ['--token-file', tokenFile(api.tokens.viewer)]
    const { code, stdout, stderr } = await runCli(['incidents', 'list', '--json', ...flag], {
      ...api.as('admin'),
      NIGHTSHIFT_TOKEN: 'unknown',
    })
    expect(code).toBe(0)
    expect(stdout + stderr).not.toContain(api.tokens.viewer)
  })

  test('an open incident says that it is queued, how many are ahead, and why', async () => {
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

  test('times have their zone, and --utc tells them in UTC', async () => {
    const id = await openedIncident(api.db)
    const env = { ...api.as('viewer'), TZ: 'America/New_York' }
    expect((await run(`incidents show ${id}`, env)).stdout).toMatch(/created +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d -0[45]:00/)
    expect((await run(`incidents show ${id} --utc`, env)).stdout).toMatch(/created +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/)
  })
})

describe('approvals', () => {
  const api = useServedApi()
  const run = (command: string) => runCli(command.split(' '), api.as('approver'))
  const pending = async () => asked(api.db, await claimedIncident(api.db))
  const steps = [
    { step: 1, action: 'start', vm: 'vm-101', from: 'host-osl-1', to: 'host-osl-3' },
    { step: 2, action: 'migrate', vm: 'vm-107', from: 'host-osl-3', to: 'host-osl-2' },
  ]

  /** An approval of a plan, as the tool asks for one. */
  async function planAsked(stepKey: string, dryRun: Parameters<typeof requestApproval>[1]['dryRun']): Promise<string> {
    const incidentId = await claimedIncident(api.db)
    const { id } = await api.db.transaction().execute((trx) =>
      requestApproval(trx, {
        ...{
          incidentId,
          attempt: 1,
          turn: 1,
          callId: 'c1_0',
          tool: 'execute_migration',
          args: { proposal_id: 'prp_1' },
        },
        ...{ targets: [{ kind: 'vm', id: 'vm-101' }], reason: 'host-osl-1 is dead', stateFingerprint: '' },
        ...{ actionDigest: actionDigest('execute_migration', {}), risk: 'high', reversible: true, required: 1 },
        ...{ replaces: null, actor: agentActor, expirySeconds: 600, stepKey, dryRun },
      }),
    )
    return id
  }

  test('a card shows what moves where, why, the arguments and the expiry', async () => {
    const summary = 'start 1 VM and migrate 1 VM, to host-osl-2, host-osl-3'
    const id = await planAsked('card', { possible: true, summary, details: { steps } })
    const { stdout } = await run(`approvals show ${id}`)
    expect(stdout).toMatch(/1 +start +vm-101 +host-osl-1 +→ +host-osl-3/)
    expect(stdout).toMatch(/row 1 +Alert received/)
    expect(stdout).toMatch(/2 +migrate +vm-107 +host-osl-3 +→ +host-osl-2/)
    for (const part of ['high, reversible', 'host-osl-1 is dead', '"proposal_id":"prp_1"', 'in 10 min', '0 of 1']) {
      expect(stdout).toContain(part)
    }
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    expect((await run('approvals list')).stdout).toContain(`  execute_migration: ${summary}`)
  })

  test('a card tells a rehearsal line by line, and what was not tried', async () => {
    const rehearsal = {
      told: ['runs as user 7', 'would go: 2 files'],
      untried: ['make was not tried: no way is known.'],
    }
    const id = await planAsked('rehearsed', { possible: true, summary: 'run a text', details: { rehearsal } })
    const { stdout } = await run(`approvals show ${id}`)
    expect(stdout).toMatch(
      /^ +runs as user 7\n +would go: 2 files\n +not tried +make was not tried: no way is known\.$/m,
    )
    expect(stdout).not.toContain('"told"')
  })

  test('a card says first who stays down, then in which waves, what is proved, and whose death would now be worse', async () => {
    const details = {
      ...{ proposalId: 'prp_1', state: 'partial', migrations: 1, lowerBound: 1, proof: 'certificate' },
      steps: steps.map((step, index) => ({ ...step, wave: index + 1, needs: index === 0 ? [] : [1] })),
      unplaced: [{ vm: 'vm-102', reason: 'no room for 4096 MiB' }],
      obstacle: 'RAM is short by 2048 MiB in total',
      standing: {
        domain: 'host',
        before: [
          { name: 'host-osl-2', outcome: 'restarted' },
          { name: 'host-osl-3', outcome: 'restarted' },
        ],
        after: [
          { name: 'host-osl-2', outcome: 'not_found' },
          { name: 'host-osl-3', outcome: 'moved' },
        ],
      },
    }
    const shown = async (key: string, more = {}) => {
      const id = await planAsked(key, { possible: true, summary: 'start 1 VM', details: { ...details, ...more } })
      return (await run(`approvals show ${id}`)).stdout
    }
    const partial = await shown('partial')
    expect(partial).toMatch(
      /^execute_migration.*\n\n {2}1 VM stays down\n {4}vm-102: no room for 4096 MiB\n {2}A place for all does/,
    )
    expect(partial).toMatch(/2 +2 +migrate +vm-107 +host-osl-3 +→ host-osl-2 +1\n/)
    const told = partial.replace(/\s+/g, ' ')
    expect(told).toContain(
      'if it is host-osl-2, no room for all its VMs was found. Worse than before the plan: host-osl-2 and host-osl-3.',
    )
    const planned = await shown('planned', { state: 'planned', unplaced: [], obstacle: null })
    expect(planned).toContain('1 migration, and no plan needs fewer (certificate)')
    expect(planned).not.toContain('stays down')
  })

  test('a decision is made with a token that nobody sees, and carries its reason', async () => {
    const [one, other] = [await pending(), await pending()]
    const [approved, denied] = await Promise.all([
      run(`approvals approve ${one}`),
      runCli(['approvals', 'deny', other, '--reason', 'host-osl-2 is being replaced'], api.as('approver')),
    ])
    expect(approved).toMatchObject({ code: 0, stdout: '' })
    expect(approved.stderr).toContain(`${one} is approved`)
    expect(denied.stderr).toContain(`${other} is denied`)
    const { stdout } = await run(`approvals show ${other} --json`)
    expect(JSON.parse(stdout).decisions).toMatchObject([
      { operator: 'approver', decision: 'deny', reason: 'host-osl-2 is being replaced', via: 'api' },
    ])
  })

  test('several calls of one card are decided by one command, each with its own token', async () => {
    const incidentId = await claimedIncident(api.db)
    const first = await asked(api.db, incidentId)
    const second = await asked(api.db, incidentId, { askedWith: first, summary: 'restart the second' })
    expect((await run(`approvals show ${first}`)).stdout).toMatch(/also asks +execute_migration: restart the second/)
    const wrong = await run(`approvals approve ${first} ${second} --uses 2`)
    expect([wrong.code, wrong.stderr.includes('Nothing was decided')]).toEqual([2, true])
    const { stdout } = await run(`approvals approve ${first} ${second} --json`)
    expect(JSON.parse(stdout)).toMatchObject([
      { approvalId: second, status: 'approved' },
      { approvalId: first, status: 'approved' },
    ])
  })

  test('a printed token is alone on stdout, decides once, and stderr has the command that uses it', async () => {
    const incidentId = await claimedIncident(api.db)
    const id = await asked(api.db, incidentId)
    const { stdout, stderr } = await runCli(['approvals', 'token', id, 'approve'], {
      ...api.as('approver'),
      TEMPORAL_ADDRESS: '127.0.0.1:7999',
      TEMPORAL_NAMESPACE: 'ops',
    })
    const token = stdout.trim()
    expect(token).toMatch(/^\S{30,}$/)
    expect(stderr.replace(/ \\\n +/g, ' ')).toContain(
      `temporal workflow update execute --address 127.0.0.1:7999 --namespace ops --workflow-id investigate:${incidentId}:1 --name decide --input '{"decision":"approve","token":"${token}"}'`,
    )
    expect((await api.post(`/approvals/${id}/decision`, { body: { decision: 'approve', token } })).status).toBe(200)
  })

  test('a watched approval ends the watch when it is decided, and a watch of all tells of each', async () => {
    const before = await pending()
    const one = startCli(['approvals', 'watch', before], api.as('viewer'))
    const all = startCli(['approvals', 'watch'], api.as('viewer'))
    await eventually('what is pending', () => all.said.stdout.includes(before) && api.listeners() === 1)
    await eventually('it asks', () => api.requests.some((each) => each.asked === `GET /api/v1/approvals/${before}`))
    const later = await pending()
    await eventually('what is asked later', () => all.said.stdout.includes(later))
    await run(`approvals approve ${before}`)
    expect(await one.ended).toMatchObject({ code: 0, stdout: `${before} is approved.\n` })
    await eventually('the decision', () => all.said.stdout.includes(`${before} is approved`))
    all.child.kill('SIGINT')
    expect((await all.ended).stdout.match(new RegExp(`approval +${later}`, 'g'))).toHaveLength(1)
  })

  const atTerminal = (command: string, typed: string) => runAtTerminal(command.split(' '), api.as('approver'), typed)

  test('at a terminal an approval is shown before it is asked for, and only a yes decides', async () => {
    const id = await planAsked('asked-first', { possible: true, summary: 'start 1 VM', details: { steps } })
    const statusOf = async () => JSON.parse((await run(`approvals show ${id} --json`)).stdout).status
    const no = await atTerminal(`approvals approve ${id}`, 'n')
    expect(no.code).toBe(1)
    for (const part of ['host-osl-1 is dead', 'vm-107', `Approve ${id}?`, 'Nothing was decided.']) {
      expect(no.shown).toContain(part)
    }
    expect(await statusOf()).toBe('pending')
    const yes = await atTerminal(`approvals approve ${id}`, 'yes')
    expect([yes.code, await statusOf()]).toEqual([0, 'approved'])
    const scripted = await pending()
    const unasked = await atTerminal(`approvals approve ${scripted} --yes`, '')
    expect([unasked.code, unasked.shown.includes('[y/N]')]).toEqual([0, false])
  })

  test('a question is given more time, and its card says what each answer leads to', async () => {
    const id = await planAsked('extended', { possible: true, summary: 'start 1 VM', details: { steps } })
    expect((await run(`approvals extend ${id}`)).stdout).toMatch(/^apr_\w+ can be decided until 2\d{3}-/)
    const { stdout } = await run(`approvals show ${id}`)
    for (const part of ['in 25 min', 'if yes', 'if no', 'if neither']) expect(stdout).toContain(part)
    expect((await runCli(['approvals', 'extend', id], api.as('viewer'))).code).not.toBe(0)
  })
})
