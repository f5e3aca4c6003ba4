import { expect, test } from '@jest/globals'
import { requestApproval } from '../../../db/approvals/ask.ts'
import { decide } from '../../../db/approvals/decide.ts'
import { actionDigest } from '../../../domain/digest.ts'
import { agentActor } from '../../../domain/event.ts'
import { asked } from '../../support/announced.ts'
import { claimedIncident } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'
import { runAtTerminal, runCli, startCli, useServedApi } from '../../support/run-cli.ts'

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
      incidentId,
      attempt: 1,
      turn: 1,
      callId: 'c1_0',
      tool: 'execute_migration',
      args: { proposal_id: 'prp_1' },
      targets: [{ kind: 'vm', id: 'vm-101' }],
      reason: 'host-osl-1 is dead',
      stateFingerprint: '',
      actionDigest: actionDigest('execute_migration', {}),
      risk: 'high',
      reversible: true,
      required: 1,
      replaces: null,
      actor: agentActor,
      expirySeconds: 600,
      stepKey,
      dryRun,
    }),
  )
  return id
}

test('a card shows the moves, the reason, the arguments and the expiry', async () => {
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

test('a card names the witness who reports a dead host, and an approval that needs a statement names the host', async () => {
  const host = { region: 'osl', rack: 'r1', state: 'dead', ramMib: 1_024, cpuMc: 1_000 }
  await api.owner.insertInto('region').values({ id: 'osl' }).execute()
  await api.owner
    .insertInto('host')
    .values({ id: 'host-osl-1', ...host })
    .execute()
  const witnesses = [{ who: 'the platform', sees: 'platform', says: 'down', at: null }]
  const deaths = [{ host: 'host-osl-1', witnesses, isForecast: false, verdict: 'unconfirmed', sentence: 'it may live' }]
  const id = await planAsked('dead', { possible: true, summary: 'start vm-101', details: { steps, deaths } })
  const { stdout } = await run(`approvals show ${id}`)
  expect(stdout).toMatch(/Sources that say the host is dead\n +host-osl-1: the platform says that it is down/)
  expect(stdout).toContain('--host-is-off host-osl-1')
  const bare = await run(`approvals approve ${id}`)
  expect(bare.code).not.toBe(0)
  expect(bare.stderr).toContain('One source is not enough')
  expect((await run(`approvals approve ${id} --host-is-off host-osl-1`)).code).toBe(0)
  expect((await run(`approvals show ${id}`)).stdout).toContain('approved')
})

test('a card shows a rehearsal line by line, and the parts that were not tried', async () => {
  const rehearsal = {
    told: ['runs as user 7', 'would go: 2 files'],
    untried: ['make was not tried: no way is known.'],
  }
  const id = await planAsked('rehearsed', { possible: true, summary: 'run a text', details: { rehearsal } })
  const { stdout } = await run(`approvals show ${id}`)
  expect(stdout).toMatch(/^ +runs as user 7\n +would go: 2 files$/m)
  expect(stdout).toMatch(/Reasons against it\n {4}make was not tried: no way is known\.$/m)
  expect(stdout).not.toContain('"told"')
})

test("a card first shows the VMs that stay down, then the waves, the proof, and which host's failure would be worse now", async () => {
  const details = {
    proposalId: 'prp_1',
    state: 'partial',
    migrations: 1,
    lowerBound: 1,
    proof: 'certificate',
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
    /Highest cost\n {4}1 VM stays down\. .*Reasons against it\n {4}1 VM stays down\.\n {4}vm-102: no room for 4096 MiB\n {4}There is no place for all/s,
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

test('a decision uses a token that is not printed, and contains its reason', async () => {
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
  const sent = { approvalId: id, incidentId, token, decision: 'approve', caller: null, via: 'update' } as const
  expect(await decide(api.db, sent)).toMatchObject({ outcome: 'recorded', status: 'approved' })
})

test('the watch of one approval ends when it is decided, and the watch of all prints each decision', async () => {
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

test('at a terminal an approval is shown before the question, and only yes decides', async () => {
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

test('an approval gets more time, and its card shows the consequences of each answer', async () => {
  const id = await planAsked('extended', { possible: true, summary: 'start 1 VM', details: { steps } })
  expect((await run(`approvals extend ${id}`)).stdout).toMatch(/^apr_\w+ can be decided until 2\d{3}-/)
  const { stdout } = await run(`approvals show ${id}`)
  for (const part of ['in 25 min', 'If you approve', 'If you deny', 'If you do nothing']) expect(stdout).toContain(part)
  expect((await runCli(['approvals', 'extend', id], api.as('viewer'))).code).not.toBe(0)
})
