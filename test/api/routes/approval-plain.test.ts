import { expect, test } from '@jest/globals'
import { listApprovals } from '../../../db/approvals/find.ts'
import { systemScope } from '../../../db/scope.ts'
import type { Role } from '../../../domain/permissions.ts'
import { asked, wroteRows } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident, moveClock } from '../../support/database.ts'

const api = useApi()
const origin = 'http://localhost'

async function signedIn(role: Role): Promise<string> {
  const response = await api.api.app.request(`${origin}/auth/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin },
    body: JSON.stringify({ token: api.tokens[role] }),
  })
  return (response.headers.get('set-cookie') ?? '').split(';')[0] as string
}

async function open(id: string, cookie = '', form?: Record<string, string> | [string, string][], from = origin) {
  const response = await api.api.app.request(`${origin}/approvals/${id}/plain`, {
    method: form ? 'POST' : 'GET',
    headers: { cookie, ...(form && { origin: from, 'content-type': 'application/x-www-form-urlencoded' }) },
    ...(form && { body: new URLSearchParams(form).toString() }),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const anApproval = async (more = {}) => asked(api.db, await claimedIncident(api.db), more)
const statusOf = async (id: string) => (await listApprovals(systemScope(api.db), { id }, { before: null, limit: 1 }))[0]

test('the approval can be read without JavaScript, and its page runs no script', async () => {
  const id = await anApproval()
  const { status, text, headers } = await open(id, await signedIn('approver'))
  expect(status).toBe(200)
  expect(text).toContain('Start 2 VMs')
  expect(text).toMatch(/<li><a href="\/incidents\/inc_[0-9a-z]+#e-1">row 1<\/a> Alert received/)
  expect(text).not.toContain('<script')
  expect(headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; style-src 'sha256-[^']+'; img-src 'self'; form-action 'self'/,
  )
})

test('the card shows the possible cause in one line, supported causes before proposed causes, and no refuted cause', async () => {
  const incidentId = await claimedIncident(api.db)
  const id = await asked(api.db, incidentId)
  const cookie = await signedIn('approver')
  const cause = async () =>
    /<p>((?:Likely|Possible) cause: [^<]*)<\/p>/.exec((await open(id, cookie)).text)?.[1] ?? null
  const record = (hypothesis: string, detail: string, quotes: object[] = []) =>
    api.post(`/incidents/${incidentId}/events`, { body: { action: 'investigated', detail, hypothesis, quotes } })
  expect(await cause()).toBeNull()
  await record('proposed', 'The <b>disk</b> is full')
  expect(await cause()).toBe('Possible cause: The &lt;b&gt;disk&lt;/b&gt; is full (proposed)')
  await record('proposed', 'A power supply failed')
  await record('supported', 'A power supply failed', [
    { seq: 1, text: 'firing' },
    { seq: 2, text: 'x' },
  ])
  await record('proposed', 'The rack is hot')
  expect(await cause()).toBe('Likely cause: A power supply failed (quoted, rows 1, 2)')
  for (const each of ['The <b>disk</b> is full', 'A power supply failed', 'The rack is hot'])
    await record('refuted', each, [{ seq: 1, text: 'firing' }])
  expect(await cause()).toBeNull()
})

test('the steps of the approved call can be read without JavaScript, with folded arguments', async () => {
  const id = await anApproval()
  await wroteRows(api.db, id, [
    { kind: 'tool_started' },
    { kind: 'step_started', step: 1, action: 'start', vm: '<b>vm-1', to: 'host-2' },
  ])
  const { text } = await open(id, await signedIn('approver'))
  expect(text).toContain('<li>start &lt;b&gt;vm-1 to host-2: <b>running</b></li>')
  expect(text.indexOf('<h2>Dry run')).toBeLessThan(text.indexOf('<h2>Exact arguments</h2><details><summary>'))
})

test("the page of a plan shows the VMs that stay down before the steps, what is proved, and which host's failure would be worse now", async () => {
  const id = await anApproval()
  const step = { step: 1, action: 'start', vm: 'vm-1', from: 'host-1', to: 'host-2' }
  const plan = {
    state: 'partial',
    migrations: 0,
    lowerBound: 0,
    proof: 'trivial',
    obstacle: null,
    steps: [{ ...step, needs: [], wave: 1 }],
    unplaced: [{ vm: '<b>vm-2', reason: 'no room for 4096 MiB' }],
    standing: {
      domain: 'host',
      before: [{ name: 'host-2', outcome: 'restarted' }],
      after: [{ name: 'host-2', outcome: 'moved' }],
    },
  }
  const shown = async (details: object) => {
    const dryRun = JSON.stringify({ possible: true, summary: 'start 1 VM', details })
    await api.owner.updateTable('approval').set({ dryRun }).where('id', '=', id).execute()
    return (await open(id, await signedIn('approver'))).text
  }
  const text = await shown(plan)
  expect(text).toMatch(/1 VM stays down\.<\/p><p>&lt;b&gt;vm-2: no room .*start vm-1 from host-1 to host-2 \(wave 1\)/s)
  expect(text).toContain('A place for all may exist')
  expect(text).toContain('Worse than before the plan: host-2.')
  // An approval of an older release knows steps alone; what is not understood is shown as it is.
  expect(await shown({ steps: [step] })).toContain('<li>start vm-1 from host-1 to host-2</li>')
  expect(await shown({ ...plan, unplaced: ['vm-2'] })).toContain('&quot;unplaced&quot;')
})

test('a rehearsal is shown line by line, apart from the parts that were not tried', async () => {
  const id = await anApproval()
  const details = {
    rehearsal: {
      told: ['<b>runs as user 7', 'would go: 2 files'],
      untried: ['make was not tried: no way is known.'],
    },
  }
  const dryRun = JSON.stringify({ possible: false, summary: 'run a text', details })
  await api.owner.updateTable('approval').set({ dryRun }).where('id', '=', id).execute()
  const { text } = await open(id, await signedIn('approver'))
  expect(text).toContain('<pre dir="ltr">&lt;b&gt;runs as user 7\nwould go: 2 files</pre>')
  expect(text).toContain('<p>make was not tried: no way is known.</p>')
  expect(text).toContain('There is none for this action.')
})

test('a visitor who is not signed in sees nothing of the approval and can sign in with a token', async () => {
  const id = await anApproval()
  const closed = await open(id)
  expect(closed.status).toBe(401)
  expect(closed.text).not.toContain('Start 2 VMs')
  const entered = await open(id, '', { token: api.tokens.approver })
  expect(entered.status).toBe(303)
  expect(entered.headers.get('set-cookie')).toContain('HttpOnly')
  expect((await open(id, '', { token: api.tokens.agent })).status).toBe(403)
  expect((await open(id, '', { token: 'forged' })).status).toBe(401)
})

test('a form approves only with the tick that it was read, by the same operation as the page', async () => {
  const id = await anApproval()
  const cookie = await signedIn('approver')
  expect((await open(id, cookie, { decision: 'approve' })).status).toBe(422)
  expect((await statusOf(id))?.status).toBe('pending')
  const done = await open(id, cookie, { decision: 'approve', sure: 'yes' })
  expect([done.status, done.text.includes('Your decision is recorded')]).toEqual([200, true])
  expect(await statusOf(id)).toMatchObject({ status: 'approved', decisions: [{ operator: 'approver', via: 'page' }] })
  expect(api.told.at(-1)).toMatchObject({ signal: 'decided' })
})

test('a form asks for a tick about each host that one witness alone reports dead, and sends the ticks', async () => {
  const steps = [{ step: 1, action: 'start', vm: 'vm-1', from: 'h-1', to: 'h-2' }]
  const witnesses = [{ who: 'the platform', sees: 'platform', says: 'down', at: null }]
  const death = { host: 'h-1', witnesses, isForecast: false, verdict: 'unconfirmed', sentence: 'h-1 may be alive.' }
  const host = { region: 'osl', rack: 'r1', state: 'dead', ramMib: 1_024, cpuMc: 1_000 }
  await api.owner.insertInto('region').values({ id: 'osl' }).execute()
  await api.owner
    .insertInto('host')
    .values({ id: 'h-1', ...host })
    .execute()
  const id = await anApproval({
    dryRun: { possible: true, summary: 'Start vm-1', details: { steps, deaths: [death] } },
  })
  const cookie = await signedIn('approver')
  const { text } = await open(id, cookie)
  expect(text).toContain('name="hostIsOff" value="h-1" required')
  expect(text).toContain('One source is not enough: the host may be alive but cut off.')
  const bare = await open(id, cookie, { decision: 'approve', sure: 'yes' })
  expect([bare.status, bare.text.includes('Nothing was decided: h-1: the platform says')]).toEqual([403, true])
  expect((await open(id, cookie, { decision: 'approve', sure: 'yes', hostIsOff: 'h-1' })).status).toBe(200)
  expect(await statusOf(id)).toMatchObject({ status: 'approved' })
})

test('a form decides the calls that are ticked, except critical calls and calls of another card', async () => {
  const incidentId = await claimedIncident(api.db)
  const first = await asked(api.db, incidentId, { summary: 'the first' })
  const of = { askedWith: first }
  const [second, third] = [
    await asked(api.db, incidentId, { ...of, summary: 'the second' }),
    await asked(api.db, incidentId, { ...of, summary: 'the third' }),
  ]
  const critical = await asked(api.db, incidentId, { ...of, summary: 'the worst', risk: 'critical' })
  const foreign = await anApproval()
  const cookie = await signedIn('approver')
  const { text } = await open(first, cookie)
  expect(text).toContain(`name="also" value="${second}"`)
  expect(text).not.toContain(`name="also" value="${critical}"`)
  expect(text).toContain('the worst')
  for (const other of [critical, foreign, 'apr_none']) {
    const refused = await open(first, cookie, [
      ['decision', 'approve'] as [string, string],
      ['sure', 'yes'] as [string, string],
      ['also', second] as [string, string],
      ['also', other] as [string, string],
    ])
    expect([refused.status, refused.text.includes('Nothing was decided')]).toEqual([422, true])
  }
  const statuses = async () =>
    await Promise.all([first, second, third, critical, foreign].map(async (id) => (await statusOf(id))?.status))
  expect(await statuses()).toEqual(Array(5).fill('pending'))
  const done = await open(first, cookie, { decision: 'approve', sure: 'yes', also: second })
  expect(done.status).toBe(200)
  expect(await statuses()).toEqual(['approved', 'approved', 'pending', 'pending', 'pending'])
})

test('a form denies only with a reason', async () => {
  const id = await anApproval()
  const cookie = await signedIn('approver')
  expect((await open(id, cookie, { decision: 'deny' })).status).toBe(422)
  expect((await open(id, cookie, { decision: 'deny', category: 'other', reason: ' ' })).status).toBe(422)
  expect((await open(id, cookie, { decision: 'deny', category: 'too_risky' })).status).toBe(200)
  expect(await statusOf(id)).toMatchObject({ status: 'denied', decisions: [{ reason: 'too risky' }] })
})

test('a form of a foreign page, of a viewer or of an expired approval decides nothing', async () => {
  const id = await anApproval({ expirySeconds: 60 })
  const approve = { decision: 'approve', sure: 'yes' }
  expect((await open(id, await signedIn('approver'), approve, 'https://evil.example')).status).toBe(403)
  expect((await open(id, await signedIn('viewer'), approve)).status).toBe(403)
  expect((await statusOf(id))?.status).toBe('pending')
  const cookie = await signedIn('approver')
  await moveClock(api.owner, '2 minutes')
  expect((await open(id, cookie, approve)).status).toBe(410)
  await moveClock(api.owner, '0 minutes')
})

test('the second person to decide is told who decided first', async () => {
  const id = await anApproval()
  await open(id, await signedIn('approver'), { decision: 'deny', category: 'wrong_time', reason: 'backup runs' })
  const second = await open(id, await signedIn('admin'), { decision: 'approve', sure: 'yes' })
  expect(second.status).toBe(410)
  expect(second.text).toContain('Denied by approver')
})

test('text with markup or with characters that turn the reading direction is shown literally', async () => {
  const id = await anApproval()
  const hostile = '<img src=x onerror=alert(1)>\u202Eevil'
  await api.owner
    .updateTable('approval')
    .set({ reason: hostile, args: JSON.stringify({ host: hostile }) })
    .where('id', '=', id)
    .execute()
  const { text } = await open(id, await signedIn('approver'))
  expect(text).not.toContain('<img')
  expect(text).toContain('&lt;img src=x')
  expect(text).not.toContain('\u202E')
  expect(text).toContain('\\u202e')
})
