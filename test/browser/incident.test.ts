import { expect, test } from '@jest/globals'
import { noteWait } from '../../db/incidents/waits.ts'
import { append } from '../../db/log/append.ts'
import { publishLiveAnswer } from '../../db/log/live.ts'
import { agentActor } from '../../domain/event.ts'
import { asked } from '../support/announced.ts'
import { atIncidents, firstScreen, hears, screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { claimedIncident, openedIncident } from '../support/database.ts'

const on = useBrowser()

const looks = [
  [1440, 'light'],
  [390, 'dark'],
] as const

const longType = 'node_filesystem_almost_out_of_space_in_48_letter'

/** A run that asks the model for its third of ten turns. */
async function thinking(): Promise<string> {
  const id = await claimedIncident(on.spine.db, { labels: { incident_type: longType }, title: 'Disk 96% full' })
  await on.spine.db.transaction().execute(async (trx) => {
    const by = { actor: agentActor, detail: 'Gathered context' } as const
    const body = { digest: 'd', bytes: 1, head: '', tail: '' }
    await append(trx, id, 1, {
      ...by,
      kind: 'context_assembled',
      metadata: {
        prompt: body,
        tools: body,
        context: body,
        protocol: 'native',
        model: 'slow-model',
        parts: {},
        hintFrom: null,
        maxTurns: 10,
        deadline: '2030-01-01T00:00:00Z',
        tokenBudget: 1000,
      },
    })
    for (const turn of [1, 2]) {
      await append(trx, id, 1, {
        kind: 'model_answered',
        actor: agentActor,
        detail: `Answer ${turn}`,
        turn,
        metadata: {
          content: `Look ${turn}`,
          body: null,
          calls: [],
          final: null,
          problem: null,
          model: 'slow-model',
          usage: { promptTokens: 1, completionTokens: 1 },
          finishReason: 'stop',
          durationMs: 1,
        },
      })
    }
  })
  return id
}

/**
 * The run asks the model, or waits for it with so many before it: rows as its worker writes them.
 */
async function asksModel(incidentId: string, state: 'asked' | 'waiting', ahead: number): Promise<void> {
  const server = `http://slow-model/${incidentId}`
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString()
  const until = new Date(Date.now() + 600_000).toISOString()
  const rowOf = (of: string, askedAt: string, heldAt: string | null) => ({
    holder: `${of}.1`,
    server,
    incidentId: of,
    rank: 1,
    askedAt,
    heldAt,
    until,
  })
  await on.spine.db.deleteFrom('modelSlot').where('incidentId', '=', incidentId).execute()
  const own = rowOf(incidentId, ago(14), state === 'asked' ? ago(14) : null)
  const others = Array.from({ length: ahead }, (_, n) => rowOf(`${incidentId}-other-${n}`, ago(20 + n), null))
  await on.spine.db
    .insertInto('modelSlot')
    .values([own, ...others] as never)
    .execute()
}

test.each(looks)(
  'at %i pixels in %s a page shows which model thinks, for how long, in which turn, and stops it',
  async (width, colorScheme) => {
    const id = await thinking()
    on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 844 }, colorScheme })
    await asksModel(id, 'asked', 0)
    await on.page.goto(`${on.spine.url}/incidents/${id}`)
    const progress = on.page.locator('.progress')
    await progress.getByText('slow-model is answering').waitFor()
    expect(await progress.innerText()).toMatch(/· 1\d s · turn 3 of 10/)
    await screenshot(on.page, `thinking-${width}-${colorScheme}`)
    expect(await on.page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    const live = {
      incidentId: id,
      attempt: 1,
      turn: 3,
      maxTurns: 10,
      model: 'slow-model',
      state: 'writing' as const,
      seconds: 15.5,
      tokens: 310,
      isCounted: false,
      tail: `<img src=x onerror=alert(1)> \u202eand the replica lags ${'further '.repeat(40)}`,
    }
    // A worker tells it every second; nobody hears what is told before the page listens.
    const telling = setInterval(() => void publishLiveAnswer(on.spine.db, live), 300)
    await progress.getByText('slow-model answers · 16 s · about 310 tokens · turn 3 of 10').waitFor()
    expect(await progress.innerText()).toContain('and the replica lags')
    expect(await progress.locator('img').count()).toBe(0)
    clearInterval(telling)
    await screenshot(on.page, `writing-${width}-${colorScheme}`)
    expect(await on.page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    await publishLiveAnswer(on.spine.db, { ...live, state: 'ended', tail: '' })
    await progress.getByText('slow-model is answering').waitFor()
    await asksModel(id, 'waiting', 2)
    await on.page.reload()
    await progress.getByText('Waits for a model slot, 2 ahead').waitFor()
    await noteWait(on.spine.db, { incidentId: id, attempt: 1 }, 'core_api')
    await on.page.reload()
    await progress.getByText('Waits because the core API does not answer').waitFor()
    await progress.getByRole('button', { name: /^Stop/ }).click()
    await on.page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
    await on.page.locator('.glance').getByText('approver has it').waitFor()
    const { owner } = await on.spine.get<{ owner: { name: string } | null }>(`/incidents/${id}`)
    expect(owner?.name).toBe('approver')
  },
)

test('a person sends a message to a run on its page, which shows the turn that read it and the possible cause', async () => {
  const id = await thinking()
  on.page = await signedIn(on.browser, on.spine, 'approver')
  await on.page.goto(`${on.spine.url}/incidents/${id}`)
  await on.page.getByLabel('Tell the agent').fill('look at vm-7 <b>first</b>')
  await on.page.getByRole('button', { name: 'Tell it' }).click()
  const told = on.page.getByRole('listitem').filter({ hasText: 'look at vm-7 <b>first</b>' })
  await told.getByText(/approver · to the agent, not read yet/).waitFor()
  const { seq } = (await on.spine.events(id)).at(-1) as { seq: number }
  await on.spine.db.transaction().execute(async (trx) => {
    await append(trx, id, 1, {
      kind: 'model_answered',
      actor: agentActor,
      detail: 'Answer 3',
      turn: 3,
      metadata: {
        content: 'Look 3',
        body: null,
        calls: [],
        final: null,
        problem: null,
        model: 'slow-model',
        read: [seq],
        usage: { promptTokens: 1, completionTokens: 1 },
        finishReason: 'stop',
        durationMs: 1,
      },
    })
    const hypothesis = {
      id: 'h1',
      text: 'The disk is full',
      state: 'refuted' as const,
      quotes: [{ seq: 1, text: '41 %' }],
    }
    await append(trx, id, 1, {
      kind: 'commented',
      actor: agentActor,
      detail: 'The disk is full',
      metadata: { text: 'The disk is full', confidence: null, action: 'investigated', hypothesis },
    })
  })
  await told.getByText(/to the agent, read in turn 3/).waitFor()
  const causes = on.page.getByRole('region', { name: 'Other hypotheses' })
  await causes.getByText('The disk is full').waitFor()
  expect(await causes.innerText()).toMatch(/refuted The disk is full #1/)
  await screenshot(on.page, 'told-1440-light')
})

test('an open incident shows that it is queued, how many are before it, and why', async () => {
  const labels = { incident_type: 'service_down' }
  const leader = await openedIncident(on.spine.db, { labels })
  const id = await openedIncident(on.spine.db, { labels })
  on.page = await signedIn(on.browser, on.spine)
  await on.page.goto(`${on.spine.url}/incidents/${id}`)
  await on.page.getByText('Queued, 1 ahead:').waitFor()
  await screenshot(on.page, 'queued-1440-light')
  await on.page.goto(`${on.spine.url}/incidents/${leader}`)
  await on.page.getByText('Queued, next:').waitFor()
})

test.each(looks)(
  'at %i pixels in %s a page whose server is away keeps its content and unsent text, and shows how old the content is',
  async (width, colorScheme) => {
    const id = await openedIncident(on.spine.db, { title: 'Fan is broken', labels: { incident_type: longType } })
    on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 844 }, colorScheme })
    await on.page.goto(`${on.spine.url}/incidents/${id}?tab=log`)
    await on.page.getByRole('log').getByText('Alert received').waitFor()
    await on.page.getByLabel('Add a note').fill('the spare is in rack 4')
    await on.spine.kill('api')
    const banner = on.page.getByRole('alert').filter({ hasText: 'The server does not answer' })
    await banner.getByText(/This page was last updated at \d\d:\d\d:\d\d/).waitFor()
    // The next question goes unanswered too, and the on.page still stays.
    await on.page.waitForTimeout(5_000)
    expect(await on.page.getByRole('alert').count()).toBe(1)
    expect(await on.page.getByRole('log').innerText()).toContain('Alert received')
    expect(await on.page.getByLabel('Add a note').inputValue()).toBe('the spare is in rack 4')
    await screenshot(on.page, `away-${width}-${colorScheme}`)
    await on.spine.start('api')
    await banner.waitFor({ state: 'detached' })
    await on.page.reload()
    await on.page.getByRole('heading', { name: 'Fan is broken' }).waitFor()
    expect(await on.page.getByLabel('Add a note').inputValue()).toBe('the spare is in rack 4')
    await on.page.getByRole('button', { name: 'Add the note' }).click()
    await on.page.getByRole('log').getByText('the spare is in rack 4').waitFor()
    await on.page.reload()
    await on.page.getByRole('heading', { name: 'Fan is broken' }).waitFor()
    expect(await on.page.getByLabel('Add a note').inputValue()).toBe('')
  },
)

test('a server that hangs is shown as lost after 5 s of waiting, and without a request after two missed heartbeats', async () => {
  const id = await openedIncident(on.spine.db, { title: 'Fan hangs' })
  on.page = await signedIn(on.browser, on.spine)
  await on.page.clock.install()
  await on.page.goto(`${on.spine.url}/incidents/${id}`)
  await hears(on.page)
  // Its form is there once the incident has come: a server that hangs before would leave the page
  // without it.
  await on.page.getByLabel('Add a note').waitFor()
  on.spine.signal('api', 'SIGSTOP')
  try {
    await on.page.clock.runFor(40_000)
    await on.page.getByText('Lost: reconnecting…').waitFor()
    await on.page
      .getByRole('alert')
      .filter({ hasText: /The server (?:does|did) not answer/ })
      .waitFor()
    on.spine.signal('api', 'SIGCONT')
    await on.page.clock.runFor(10_000)
    await hears(on.page)
    on.spine.signal('api', 'SIGSTOP')
    await on.page.getByLabel('Add a note').fill('is anybody there?')
    await on.page.getByRole('button', { name: 'Add the note' }).click()
    await on.page.clock.runFor(3_100)
    await on.page.getByRole('alert').filter({ hasText: 'within 5 s' }).waitFor()
    await on.page.getByText('Lost: reconnecting…').waitFor()
  } finally {
    on.spine.signal('api', 'SIGCONT')
  }
  await on.page.getByRole('log').or(on.page.getByText('is anybody there?')).first().waitFor()
})

test('a question is a page with its answer, and does not count as an incident of a machine', async () => {
  const { body } = await on.spine.post('/agent', { question: 'Which hosts are dead?' })
  on.page = await signedIn(on.browser, on.spine, 'admin')
  await on.page.goto(`${on.spine.url}/incidents/${body.id}`)
  await on.page.getByRole('heading', { name: 'Which hosts are dead?' }).waitFor()
  await on.page.getByRole('heading', { name: 'No answer yet' }).waitFor()
  for (const name of ['Escalate', 'Mark as expected', 'Take'])
    expect(await on.page.getByRole('button', { name }).count()).toBe(0)
  const parts = on.page.getByRole('navigation', { name: 'Parts of this incident' })
  expect(await parts.getByRole('link').allInnerTexts()).toEqual([
    'Investigation',
    'Details',
    expect.stringMatching(/^Log/),
  ])
  expect(await on.page.getByText('Cause', { exact: true }).count()).toBe(0)
  await on.page.getByRole('button', { name: 'Answer it yourself' }).click()
  await on.page.getByLabel('The answer').fill('**None** is dead.')
  await on.page.getByRole('dialog').getByRole('button', { name: 'Answer it yourself' }).click()
  await on.page.getByRole('heading', { name: 'Answer', exact: true }).waitFor()
  expect(await on.page.getByRole('region', { name: 'Answer' }).locator('strong').first().innerText()).toBe('None')
  await screenshot(on.page, 'question-1440-light')
})

const written = [
  '## Cause',
  '**The disk** is full of `core` files, *not* of logs: [open](javascript:alert(1)) <b onclick=alert(1)>this</b>.',
  '- first evidence',
  '- second',
  '```',
  'df **-h**',
  '```',
].join('\n')

test("the model's text is shown in a safe subset of Markdown, and each paragraph once", async () => {
  const id = await thinking()
  await on.spine.db.transaction().execute(async (trx) => {
    for (const turn of [3, 4])
      await append(trx, id, 1, {
        kind: 'model_answered',
        actor: agentActor,
        detail: 'Answer',
        turn,
        metadata: {
          content: written,
          body: null,
          calls: [],
          final: null,
          problem: null,
          model: 'slow-model',
          usage: { promptTokens: 1, completionTokens: 1 },
          finishReason: 'stop',
          durationMs: 1,
        },
      })
  })
  on.page = await signedIn(on.browser, on.spine)
  await on.page.goto(`${on.spine.url}/incidents/${id}?tab=log`)
  const row = on.page.locator('#e-5 .text')
  await row.getByText('The disk').waitFor()
  expect(await row.locator('strong').allInnerTexts()).toEqual(['Cause', 'The disk'])
  expect(await row.locator('em').allInnerTexts()).toEqual(['not'])
  expect(await row.locator('li').count()).toBe(2)
  const text = await row.innerText()
  for (const part of ['open (javascript:alert(1))', '<b onclick=alert(1)>this</b>', 'df **-h**'])
    expect(text).toContain(part)
  expect(await row.locator('a, b').count()).toBe(0)
  await on.page.locator('#e-6').getByText('The same text as row 5').waitFor()
  await screenshot(on.page, 'markdown-1440-light')
  expect(on.page.complaints).toEqual([])
})

test("times are in the person's time zone, and in UTC if the person chose it, also after a reload", async () => {
  const id = await openedIncident(on.spine.db)
  on.page = await signedIn(on.browser, on.spine, 'approver', { timezoneId: 'America/New_York' })
  await on.page.goto(`${on.spine.url}/incidents/${id}`)
  await on.page.getByText('since 2026-11-20 20:00:00 -05:00').waitFor()
  await on.page.getByRole('button', { name: 'approver' }).click()
  await on.page.getByRole('button', { name: 'UTC' }).click()
  await on.page.getByText('since 2026-11-21 01:00:00 UTC').waitFor()
  await on.page.reload()
  await on.page.getByText('since 2026-11-21 01:00:00 UTC').waitFor()
})

test('a pasted id leads to its page, and an unknown address is reported', async () => {
  const id = await openedIncident(on.spine.db, { title: 'A fan is loud' })
  on.page = await atIncidents(on.browser, on.spine)
  await on.page.getByRole('searchbox').fill(` ${id} `)
  await on.page.getByRole('heading', { name: 'A fan is loud' }).waitFor()
  const answer = await on.page.goto(`${on.spine.url}/ingest/grafana`)
  expect(answer?.status()).toBe(404)
  await on.page.getByRole('heading', { name: 'No such page' }).waitFor()
})

/** The longest that the schemas allow where a person reads it first. */
const longTitle =
  `${'The replica of the orders database is behind its primary and the writes of tenants wait '.repeat(3)}`.slice(
    0,
    200,
  )

/** An incident that waits for an approval after a look and with a cause, as a run leaves it. */
async function waiting(): Promise<{ id: string; approvalId: string }> {
  const resource = { kind: 'host' as const, id: `host-${'a'.repeat(43)}` }
  const id = await claimedIncident(on.spine.db, { labels: { incident_type: longType }, title: longTitle })
  await on.spine.owner
    .updateTable('incident')
    .set({ resourceKind: 'host', resourceId: resource.id })
    .where('id', '=', id)
    .execute()
  await on.spine.db.transaction().execute(async (trx) => {
    await append(trx, id, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      detail: 'Called tool: get_host',
      turn: 1,
      metadata: {
        callId: 'c1_0',
        tool: 'get_host',
        arguments: { id: resource.id },
        effect: 'read',
        targets: [resource],
        outcome: 'done',
        result: { ok: true, data: {}, meta: {} },
        body: null,
        durationMs: 4,
        discovered: [
          { ...resource, name: resource.id, aliases: [], seen: true, health: 'critical' },
          { kind: 'vm', id: 'vm-101', name: 'vm-101', aliases: [], seen: true, health: 'down' },
        ],
        said: `${resource.id} is dead (critical): 0 of 3 VMs run`,
      },
    })
    const hypothesis = {
      id: 'h1',
      text: `The host lost its power. ${'The rack has no faults. '.repeat(20)}`,
      state: 'supported' as const,
      quotes: [{ seq: 2, text: 'dead' }],
    }
    await append(trx, id, 1, {
      kind: 'commented',
      actor: agentActor,
      detail: 'The host lost its power',
      metadata: { text: 'The host lost its power', confidence: null, action: 'investigated', hypothesis },
    })
  })
  const approvalId = await asked(on.spine.db, id, { targets: [resource] })
  const summary = `start 3 VMs and migrate 12 VMs, to ${Array.from({ length: 8 }, (_, at) => `host-osl-${at}`).join(', ')}; 2 VMs stay down`
  await on.spine.owner
    .updateTable('approval')
    .set({ dryRun: JSON.stringify({ possible: true, summary, details: {} }) })
    .where('id', '=', approvalId)
    .execute()
  return { id, approvalId }
}

test.each([
  [1440, 900, 'light'],
  [390, 844, 'dark'],
] as const)(
  'at %i by %i the first screen of a waiting incident shows the fault, its start, its cause, the question, the consequences of each answer and both buttons',
  async (width, height, colorScheme) => {
    const { id, approvalId } = await waiting()
    on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height }, colorScheme })
    await on.page.goto(`${on.spine.url}/incidents/${id}`)
    await on.page.getByRole('heading', { name: /Approval needed/ }).waitFor()
    await screenshot(on.page, `waiting-${width}-${colorScheme}`)
    const title = longTitle.slice(0, 40)
    expect(await firstScreen(on.page)).toMatchObject({ missing: [], below: [] })
    expect((await firstScreen(on.page)).answers).toMatchObject({
      what: expect.stringContaining(title),
      why: expect.stringMatching(/^The host lost its power/),
    })
    expect(await on.page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    // What nobody can do about it from here on is one press away, and nothing is decided by it.
    await on.page.getByRole('link', { name: 'Deny…' }).click()
    await on.page.waitForURL(new RegExp(`/approvals/${approvalId}#deny`))
    await on.page.locator('input[name=denial]:focus').waitFor()
    await on.page.goBack()
    await on.page.getByRole('link', { name: 'Approve…' }).click()
    await on.page.locator('h2:focus', { hasText: 'Approve' }).waitFor()
    expect((await on.spine.get<{ status: string }>(`/approvals/${approvalId}`)).status).toBe('pending')
    expect(on.page.complaints).toEqual([])
  },
)

test('the investigation has one line per turn with findings as sentences, and every number leads to its row', async () => {
  const { id } = await waiting()
  on.page = await signedIn(on.browser, on.spine)
  await on.page.goto(`${on.spine.url}/incidents/${id}`)
  const turns = on.page.locator('.turns')
  await turns.getByText('is dead (critical): 0 of 3 VMs run').or(turns.getByText('Turn 1')).first().waitFor()
  await screenshot(on.page, 'investigation-1440-light')
  expect(await on.page.locator('main').innerText()).not.toMatch(/[{}]|\[\s*"/)
  await on.page.locator('.answer').getByRole('link', { name: 'row 2' }).first().click()
  const row = on.page.getByRole('dialog', { name: /^Row 2 / })
  await row.getByText('is dead (critical): 0 of 3 VMs run').first().waitFor()
  await on.page.getByRole('link', { name: /^Attempts/ }).click()
  await on.page.getByRole('row', { name: /1 .* not over/ }).waitFor()
})
