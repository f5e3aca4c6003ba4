import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Browser } from 'playwright-core'
import { append } from '../../db/append.ts'
import { noteWait } from '../../db/waits.ts'
import { agentActor } from '../../domain/event.ts'
import { claimedIncident, openedIncident } from '../support/database.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { launch, signedIn, type Watched } from './browser.ts'
import { screenshot } from './screenshot.ts'

let spine: Spine
let browser: Browser
let page: Watched

beforeAll(async () => {
  spine = await startSpine({ parts: ['api'] })
  browser = await launch()
})
afterEach(async () => {
  await page?.context().close()
})
afterAll(async () => {
  await browser?.close()
  await spine?.stop()
})

const looks = [
  [1440, 'light'],
  [390, 'dark'],
] as const

const longType = 'node_filesystem_almost_out_of_space_in_48_letter'

/** A run that asks the model for its third of ten turns. */
async function thinking(): Promise<string> {
  const id = await claimedIncident(spine.db, { labels: { incident_type: longType }, title: 'Disk 96% full' })
  await spine.db.transaction().execute(async (trx) => {
    const by = { actor: agentActor, detail: 'Context assembled' } as const
    const body = { digest: 'd', bytes: 1, head: '', tail: '' }
    await append(trx, id, 1, {
      ...{ ...by, kind: 'context_assembled' },
      metadata: {
        ...{ prompt: body, tools: body, context: body, protocol: 'native', model: 'slow-model', parts: {} },
        ...{ hintFrom: null, maxTurns: 10, deadline: '2030-01-01T00:00:00Z', tokenBudget: 1000 },
      },
    })
    for (const turn of [1, 2]) {
      await append(trx, id, 1, {
        ...{ kind: 'model_answered', actor: agentActor, detail: `Answer ${turn}`, turn },
        metadata: {
          ...{ content: `Look ${turn}`, body: null, calls: [], final: null, problem: null, model: 'slow-model' },
          ...{ usage: { promptTokens: 1, completionTokens: 1 }, finishReason: 'stop', durationMs: 1 },
        },
      })
    }
  })
  return id
}

/** The run asks the model, or waits for it with so many before it: rows as its worker writes them. */
async function asksModel(incidentId: string, state: 'asked' | 'waiting', ahead: number): Promise<void> {
  const server = `http://slow-model/${incidentId}`
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString()
  const until = new Date(Date.now() + 600_000).toISOString()
  const rowOf = (of: string, askedAt: string, heldAt: string | null) => ({
    ...{ holder: `${of}.1`, server, incidentId: of, rank: 1, askedAt, heldAt, until },
  })
  await spine.db.deleteFrom('modelSlot').where('incidentId', '=', incidentId).execute()
  const own = rowOf(incidentId, ago(14), state === 'asked' ? ago(14) : null)
  const others = Array.from({ length: ahead }, (_, n) => rowOf(`${incidentId}-other-${n}`, ago(20 + n), null))
  await spine.db
    .insertInto('modelSlot')
    .values([own, ...others] as never)
    .execute()
}

test.each(looks)(
  'at %i pixels in %s a page says who thinks, for how long, in which turn, and stops it',
  async (width, colorScheme) => {
    const id = await thinking()
    page = await signedIn(browser, spine, 'approver', { viewport: { width, height: 844 }, colorScheme })
    await asksModel(id, 'asked', 0)
    await page.goto(`${spine.url}/incidents/${id}`)
    const progress = page.locator('.progress')
    await progress.getByText('slow-model is answering').waitFor()
    expect(await progress.innerText()).toMatch(/· 1\d s · turn 3 of 10/)
    await screenshot(page, `thinking-${width}-${colorScheme}`)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    await asksModel(id, 'waiting', 2)
    await page.reload()
    await progress.getByText('Waits for a model slot, 2 ahead').waitFor()
    await noteWait(spine.db, { incidentId: id, attempt: 1 }, 'core_api')
    await page.reload()
    await progress.getByText('Waits for the core API, which does not answer').waitFor()
    await progress.getByRole('button', { name: /^Stop/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
    await page.locator('dl').getByText('approver has it').first().waitFor()
    const { owner } = await spine.get<{ owner: { name: string } | null }>(`/incidents/${id}`)
    expect(owner?.name).toBe('approver')
  },
)

test('an open incident says that it is queued, how many are ahead, and why', async () => {
  const labels = { incident_type: 'service_down' }
  const leader = await openedIncident(spine.db, { labels })
  const id = await openedIncident(spine.db, { labels })
  page = await signedIn(browser, spine)
  await page.goto(`${spine.url}/incidents/${id}`)
  await page.getByText('Queued, 1 ahead:').waitFor()
  await screenshot(page, 'queued-1440-light')
  await page.goto(`${spine.url}/incidents/${leader}`)
  await page.getByText('Queued, next:').waitFor()
})

test.each(looks)(
  'at %i pixels in %s a page whose server went away keeps what it shows, says how old it is, and keeps what is written',
  async (width, colorScheme) => {
    const id = await openedIncident(spine.db, { title: 'Fan is broken', labels: { incident_type: longType } })
    page = await signedIn(browser, spine, 'approver', { viewport: { width, height: 844 }, colorScheme })
    await page.goto(`${spine.url}/incidents/${id}`)
    await page.getByRole('heading', { name: 'Fan is broken' }).waitFor()
    await page.getByLabel('Add a note').fill('the spare is in rack 4')
    await spine.kill('api')
    const banner = page.getByRole('alert').filter({ hasText: 'The server does not answer' })
    await banner.getByText(/What you see is as of \d\d:\d\d:\d\d/).waitFor()
    // The next question goes unanswered too, and the page still stays.
    await page.waitForTimeout(5_000)
    expect(await page.getByRole('alert').count()).toBe(1)
    expect(await page.getByRole('log').innerText()).toContain('Alert received')
    expect(await page.getByLabel('Add a note').inputValue()).toBe('the spare is in rack 4')
    await screenshot(page, `away-${width}-${colorScheme}`)
    await spine.start('api')
    await banner.waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('heading', { name: 'Fan is broken' }).waitFor()
    expect(await page.getByLabel('Add a note').inputValue()).toBe('the spare is in rack 4')
    await page.getByRole('button', { name: 'Add the note' }).click()
    await page.getByRole('log').getByText('the spare is in rack 4').waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Fan is broken' }).waitFor()
    expect(await page.getByLabel('Add a note').inputValue()).toBe('')
  },
)

const written = [
  '## Cause',
  '**The disk** is full of `core` files, *not* of logs: [open](javascript:alert(1)) <b onclick=alert(1)>this</b>.',
  '- first evidence',
  '- second',
  '```',
  'df **-h**',
  '```',
].join('\n')

test('what a model writes is shown in a safe subset of Markdown, and a paragraph only once', async () => {
  const id = await thinking()
  await spine.db.transaction().execute(async (trx) => {
    for (const turn of [3, 4])
      await append(trx, id, 1, {
        ...{ kind: 'model_answered', actor: agentActor, detail: 'Answer', turn },
        metadata: {
          ...{ content: written, body: null, calls: [], final: null, problem: null, model: 'slow-model' },
          ...{ usage: { promptTokens: 1, completionTokens: 1 }, finishReason: 'stop', durationMs: 1 },
        },
      })
  })
  page = await signedIn(browser, spine)
  await page.goto(`${spine.url}/incidents/${id}`)
  const row = page.locator('#e-5 .text')
  await row.getByText('The disk').waitFor()
  expect(await row.locator('strong').allInnerTexts()).toEqual(['Cause', 'The disk'])
  expect(await row.locator('em').allInnerTexts()).toEqual(['not'])
  expect(await row.locator('li').count()).toBe(2)
  const text = await row.innerText()
  for (const part of ['open (javascript:alert(1))', '<b onclick=alert(1)>this</b>', 'df **-h**'])
    expect(text).toContain(part)
  expect(await row.locator('a, b').count()).toBe(0)
  await page.locator('#e-6').getByText('The same text as row 5').waitFor()
  await screenshot(page, 'markdown-1440-light')
  expect(page.complaints).toEqual([])
})

test('times are in the zone of the person, and in UTC where they chose it, also after a reload', async () => {
  const id = await openedIncident(spine.db)
  page = await signedIn(browser, spine, 'approver', { timezoneId: 'America/New_York' })
  await page.goto(`${spine.url}/incidents/${id}`)
  await page.getByText('since 2026-11-20 20:00:00 -05:00').waitFor()
  await page.getByRole('button', { name: 'UTC' }).click()
  await page.getByText('since 2026-11-21 01:00:00 UTC').waitFor()
  await page.reload()
  await page.getByText('since 2026-11-21 01:00:00 UTC').waitFor()
})

test('a pasted id is gone to, and an address that leads nowhere says so', async () => {
  const id = await openedIncident(spine.db, { title: 'A fan is loud' })
  page = await signedIn(browser, spine)
  await page.getByRole('searchbox').fill(` ${id} `)
  await page.getByRole('heading', { name: 'A fan is loud' }).waitFor()
  const answer = await page.goto(`${spine.url}/ingest/grafana`)
  expect(answer?.status()).toBe(404)
  await page.getByRole('heading', { name: 'No such page' }).waitFor()
})
