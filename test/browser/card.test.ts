import { expect, test } from '@jest/globals'
import { takeAttachments } from '../../effects/attachments.ts'
import { asked, wroteRows } from '../support/announced.ts'
import { hears, planAsked, screenshot, signedIn, thirtyAsked, useBrowser } from '../support/browser.ts'
import { claimedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { buildChart, buildPng } from '../support/png.ts'

const on = useBrowser()

const opened = async (id: string, width = 1440, colorScheme: 'light' | 'dark' = 'light') => {
  on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 844 }, colorScheme })
  await on.page.goto(`${on.spine.url}/approvals/${id}`)
  await on.page.getByRole('img', { name: /^Plan to recover/ }).waitFor()
  return on.page.getByRole('article')
}

const inSight = (name: string) =>
  on.page
    .getByRole('button', { name, exact: true })
    .boundingBox()
    .then((box) => box !== null && box.y >= 0 && box.y + box.height <= (on.page.viewportSize()?.height ?? 0))

test.each([
  [1440, 'light'],
  [1440, 'dark'],
  [390, 'light'],
  [390, 'dark'],
] as const)('at %i pixels in %s both decisions and their consequences are visible at once', async (width, scheme) => {
  const card = await opened(await planAsked(on.spine), width, scheme)
  await on.page.evaluate('scrollTo(0, 0)')
  await screenshot(on.page, `card-${width}-${scheme}`)
  expect([await inSight('Deny…'), await inSight('Approve…'), await inSight('+15 minutes')]).toEqual([true, true, true])
  // What it does stands in the title: the arguments are a press away, and a command is not.
  expect(await card.getByRole('region', { name: 'Exact arguments' }).isVisible()).toBe(false)
  const lines = card.locator('.why')
  for (const words of ['The targets are read again', 'The agent reads your reason', 'the incident is escalated'])
    await lines.getByText(words).waitFor()
  await on.page.evaluate('scrollTo(0, document.body.scrollHeight / 2)')
  expect([await inSight('Deny…'), await inSight('Approve…')]).toEqual([true, true])
  await card.getByRole('button', { name: 'Last' }).click()
  await on.page.evaluate('document.querySelector(".placement").scrollIntoView()')
  await screenshot(on.page, `card-plan-${width}-${scheme}`)
  await on.page.getByRole('button', { name: 'Approve…' }).click()
  await card.getByText(/ now\?$/).waitFor()
  expect(await inSight('Yes, approve')).toBe(true)
  await screenshot(on.page, `card-armed-${width}-${scheme}`)
})

/** Where what a person must know before they press ends, and where that is covered. */
const firstScreen = `(() => {
  const foot = document.querySelector('.decide').getBoundingClientRect()
  const read = (selector, lowest) => {
    const element = document.querySelector(selector)
    const { top, right, bottom } = element.getBoundingClientRect()
    const isWhole = element.scrollHeight <= element.clientHeight + 1 && right <= innerWidth
    return { text: element.innerText, isSeen: top >= 0 && bottom <= lowest && isWhole }
  }
  const page = (selector) => read(selector, foot.top)
  const inFoot = (selector) => read(selector, innerHeight)
  return {
    what: page('h1'), worst: page('section.cost p'), on: page('.targets p:last-of-type'),
    cost: inFoot('.stakes p'), deny: inFoot('.presses button:first-child'), approve: inFoot('.presses button.main'),
    bars: [...document.querySelectorAll('nav.bottom, .decide')].filter((bar) => bar.offsetHeight > 0).length,
  }
})()`

type Seen = { text: string; isSeen: boolean }

test.each([
  [1440, 900],
  [390, 844],
] as const)(
  'at %i x %i the first screen has the question, its targets, its cost and both buttons',
  async (width, height) => {
    const plan = await planAsked(on.spine)
    const long = await asked(on.spine.db, await claimedIncident(on.spine.db, { title: 'No answer '.repeat(29) }), {
      tool: 'shell_eval',
      targets: ['a', 'b', 'c'].map((name) => ({
        kind: 'node' as const,
        id: `${name}.${'compute-'.repeat(7)}example.net`,
      })),
      dryRun: {
        possible: false,
        summary: `Restart the load balancer of the whole region and wait for ${'every backend that it has, '.repeat(4)}one by one`,
        details: {},
        proof: { by: 'nothing', text: 'look at it' },
      },
    })
    await on.spine.owner.updateTable('approval').set({ reversible: false }).where('id', '=', long).execute()
    for (const [id, what, target, cost] of [
      [
        plan,
        /^Start 3 VMs and migrate 1 VM/,
        /^vm batch-1, vm db-1/,
        /^1 VM stays down\. If rack-c or rack-d fails, there is no room for all its VMs/,
      ],
      [
        long,
        /^Restart the load balancer .* one by one$/,
        /^node a\.compute/,
        /^The action cannot be undone\. No dry run showed its effect/,
      ],
    ] as const) {
      await on.page?.context().close()
      on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height } })
      await on.page.goto(`${on.spine.url}/approvals/${id}`)
      await on.page.locator('.state .for').waitFor()
      await on.page.locator('.decide').getByText('Owner of the incident:').waitFor()
      await screenshot(on.page, `card-first-${id === plan ? 'plan' : 'long'}-${width}`)
      const { bars, ...seen } = (await on.page.evaluate(firstScreen)) as Record<string, Seen> & { bars: number }
      expect(Object.entries(seen).filter(([, { isSeen }]) => !isSeen)).toEqual([])
      expect([seen.what?.text, seen.on?.text, seen.worst?.text]).toEqual([
        expect.stringMatching(what),
        expect.stringMatching(target),
        expect.stringMatching(cost),
      ])
      // The same sentence stands beside the buttons, and one bar covers the lower edge.
      expect(seen.cost?.text).toContain(seen.worst?.text)
      expect(bars).toBe(1)
      expect(await on.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
      const presses = await on.page
        .locator('.presses button')
        .evaluateAll((buttons) =>
          buttons.map((button) => [button.textContent, button.getBoundingClientRect().height] as const),
        )
      expect(presses.map(([name]) => name)).toEqual(['Deny…', '+15 minutes', 'Approve…'])
      if (width < 820) expect(Math.min(...presses.map(([, tall]) => tall))).toBeGreaterThanOrEqual(44)
    }
  },
)

test('a person gives an approval 15 more minutes, and the countdown follows', async () => {
  const id = await planAsked(on.spine)
  const card = await opened(id)
  const left = card.locator('.decide .countdown')
  expect(await left.innerText()).toMatch(/^(9|10):/)
  await on.page.getByRole('button', { name: '+15 minutes' }).click()
  await left.getByText(/^2[45]:/).waitFor()
  expect(on.page.complaints).toEqual([])
})

test('a viewer reads the card and why they may not decide', async () => {
  const id = await planAsked(on.spine)
  await opened(id)
  await on.page.route('**/auth/session', async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ json: { ...(await answer.json()), role: 'viewer', permissions: ['read'] } })
  })
  await on.page.reload()
  await on.page.getByText('it needs the permission decide').waitFor()
  for (const name of ['Deny…', 'Approve…', '+15 minutes'])
    expect(await on.page.getByRole('button', { name, exact: true }).isDisabled()).toBe(true)
  // A question on its way would fail with the page that asked it.
  await on.page.unrouteAll({ behavior: 'ignoreErrors' })
})

test('an expired card says that nothing was changed, keeps its preview apart from history, and asks again', async () => {
  const id = await planAsked(on.spine)
  const { incidentId } = await on.spine.get<{ incidentId: string }>(`/approvals/${id}`)
  await on.spine.owner
    .updateTable('approval')
    .set({ status: 'expired', expiresAt: '2026-11-21T02:46:00Z' })
    .where('id', '=', id)
    .execute()
  await on.spine.db
    .updateTable('incident')
    .set({ status: 'escalated', assignedTo: null })
    .where('id', '=', incidentId)
    .execute()
  for (const [width, scheme] of [
    [390, 'dark'],
    [1440, 'light'],
  ] as const) {
    await on.page?.context().close()
    const card = await opened(id, width, scheme)
    await card.getByText('Expired: nobody decided in time, and nothing was changed.').waitFor()
    await card.getByText('This action was not done.').waitFor()
    expect(await card.innerText()).not.toMatch(/steps are done/)
    expect(await card.getByRole('button', { name: 'Approve…' }).count()).toBe(0)
    await screenshot(on.page, `card-expired-${width}-${scheme}`)
  }
  await on.page.getByRole('button', { name: 'Request again this action' }).click()
  await on.page.getByRole('dialog').getByRole('button', { name: 'Request again' }).click()
  await on.page.locator('.turns').getByText('Asked for an investigation').waitFor()
  expect((await on.spine.get<{ status: string }>(`/incidents/${incidentId}`)).status).toBe('open')
})

test('an approved call shows its running steps on the card, then its output and its end', async () => {
  const id = await planAsked(on.spine)
  const card = await opened(id)
  const { dryRun } = await on.spine.get<{
    dryRun: { details: { steps: { action: string; vm: string; to: string }[] } }
  }>(`/approvals/${id}`)
  const steps = dryRun.details.steps.map(({ action, vm, to }, index) => ({ step: index + 1, action, vm, to }))
  const ended = (step: number, status: string) => ({
    kind: 'step_finished' as const,
    step,
    status,
    detail: 'as asked',
  })
  await on.spine.db.updateTable('approval').set({ status: 'consumed' }).where('id', '=', id).execute()
  await wroteRows(on.spine.db, id, [
    { kind: 'tool_started' },
    { kind: 'step_started', ...steps[0] },
    ended(1, 'OK'),
    { kind: 'step_started', ...steps[1] },
  ])
  const shown = card.locator('.run')
  await shown
    .getByText(/^The action runs now\.\s*$/)
    .first()
    .waitFor()
  await shown.locator('[aria-current=step]', { hasText: `${steps[1]?.action} ${steps[1]?.vm} ` }).waitFor()
  const states = async () =>
    (await shown.locator('.steps li').allInnerTexts()).map((text) => text.trim().split(/\s/)[0])
  expect(await states()).toEqual(['done', 'running', 'waiting', 'waiting'])
  expect(await on.page.locator('.run [aria-current="step"]').count()).toBe(1)
  await on.page.evaluate('scrollTo(0, 0)')
  await screenshot(on.page, 'card-runs-1440-light')
  await wroteRows(on.spine.db, id, [
    ended(2, 'FAILED'),
    { kind: 'tool_output', lines: ['host-3 is full'], left: 0 },
    { kind: 'tool_finished', said: '1 of 4 steps done, step 2 failed' },
    { kind: 'verification', writeSeq: 1, outcome: 'not_held', postcondition: 'all run', observed: 'db-1 is stopped' },
  ])
  await shown.getByText('The action ran, but its verification failed.').waitFor()
  await shown.getByText('host-3 is full').waitFor()
  await shown.getByText('db-1 is stopped').waitFor()
  expect(await states()).toEqual(['done', 'failed', 'skipped', 'skipped'])
  await screenshot(on.page, 'card-ran-1440-light')
  expect(on.page.complaints).toEqual([])
})

/** A card with three calls: two that anybody who may decide can tick, and a critical one. */
async function askedThree() {
  const { db } = on.spine
  const incidentId = await claimedIncident(db)
  const node = (id: string) => ({
    targets: [{ kind: 'node' as const, id }],
    identity: { id },
    tool: 'service_restart',
  })
  const first = await asked(db, incidentId, { ...node('web-1'), summary: 'Restart nginx on web-1' })
  const with_ = { askedWith: first }
  const second = await asked(db, incidentId, { ...node('web-2'), ...with_, summary: 'Restart nginx on web-2' })
  const gone = { ...with_, summary: 'Delete the data of web-3', risk: 'critical' as const }
  const third = await asked(db, incidentId, { ...node('web-3'), ...gone })
  return { incidentId, first, second, third }
}

const statusOf = async (id: string) => (await on.spine.get<{ status: string }>(`/approvals/${id}`)).status

test.each([
  [1440, 'light'],
  [390, 'dark'],
] as const)('at %i pixels in %s calls of one answer are on one card, each with its own tick', async (width, scheme) => {
  const { first, second, third } = await askedThree()
  const viewport = { width, height: 844 }
  on.page = await signedIn(on.browser, on.spine, 'approver', { viewport, colorScheme: scheme })
  await on.page.goto(`${on.spine.url}/approvals`)
  const line = on.page.getByRole('row', { name: /Restart nginx on web-1/ }).first()
  await line.getByText('and 2 more calls of the same answer').waitFor()
  await line.getByRole('link').first().click()
  const card = on.page.getByRole('article')
  await card.getByRole('heading', { name: 'The agent asks for 3 actions at once' }).waitFor()
  const ticks = card.getByRole('checkbox', { name: /^(Restart|Delete)/ })
  // A critical call is decided on its own card; at first only what was opened is ticked.
  expect(await ticks.count()).toBe(2)
  expect([await ticks.nth(0).isChecked(), await ticks.nth(1).isChecked()]).toEqual([true, false])
  await ticks.nth(1).check()
  await screenshot(on.page, `card-together-${width}-${scheme}`)
  expect([await inSight('Deny 2…'), await inSight('Approve 2…')]).toEqual([true, true])
  await on.page.getByRole('button', { name: 'Approve 2…' }).click()
  await card.getByText('Restart nginx on web-1; then Restart nginx on web-2 now?').waitFor()
  await on.page.getByRole('button', { name: 'Yes, approve 2' }).click()
  await card.locator('.together').getByText('Approved').nth(1).waitFor()
  expect([await statusOf(first), await statusOf(second), await statusOf(third)]).toEqual([
    'approved',
    'approved',
    'pending',
  ])
  expect(on.page.complaints).toEqual([])
})

test('a decision for the ticked calls leaves the rest waiting, and a denial reaches each ticked call', async () => {
  const { first, second } = await askedThree()
  on.page = await signedIn(on.browser, on.spine, 'approver')
  await on.page.goto(`${on.spine.url}/approvals/${first}`)
  const card = on.page.getByRole('article')
  const ticks = card.getByRole('checkbox', { name: /^Restart/ })
  await ticks.nth(0).uncheck()
  expect(await on.page.getByRole('button', { name: 'Approve…' }).isDisabled()).toBe(true)
  await ticks.nth(1).check()
  await card.getByRole('button', { name: 'Deny…' }).click()
  await card.getByText('wrong time').click()
  await card.getByRole('button', { name: 'Deny', exact: true }).click()
  await card.locator('.together').getByText('Denied').waitFor()
  expect([await statusOf(first), await statusOf(second)]).toEqual(['pending', 'denied'])
})

test('arguments are edited in a form with a field per type, which shows errors, and as JSON', async () => {
  const args = { pid: 4_242, start_time: '236692', signal: 'TERM', on: 'web-7', reason: 'it hangs' }
  const id = await asked(on.spine.db, await claimedIncident(on.spine.db), { tool: 'proc_kill' })
  const set = { args: JSON.stringify(args) }
  await on.spine.owner.updateTable('approval').set(set).where('id', '=', id).execute()
  for (const [width, scheme] of [
    [390, 'dark'],
    [1440, 'light'],
  ] as const) {
    await on.page?.context().close()
    const options = { viewport: { width, height: 844 }, colorScheme: scheme }
    on.page = await signedIn(on.browser, on.spine, 'approver', options)
    await on.page.goto(`${on.spine.url}/approvals/${id}`)
    await on.page.getByRole('button', { name: 'Edit the arguments…' }).click()
    const pid = on.page.getByLabel('pid as proc_list gave it')
    expect([await pid.inputValue(), await pid.getAttribute('type')]).toEqual(['4242', 'number'])
    const first = on.page.getByRole('button', { name: 'Approve with changes…' })
    await pid.fill('1')
    await on.page.getByText('Give a number from 2 to 4194304.').waitFor()
    expect(await first.isDisabled()).toBe(true)
    await pid.fill('4243')
    await on.page.getByLabel('signal TERM first').selectOption('HUP')
    await on.page.getByRole('textbox', { name: /^start time/ }).fill('soon')
    await on.page.getByText('The format is wrong: write it like 236692.').waitFor()
    await pid.scrollIntoViewIfNeeded()
    await screenshot(on.page, `card-form-${width}-${scheme}`)
    await on.page.getByRole('textbox', { name: /^start time/ }).fill('236692')
    expect(await on.page.locator('.changes li').allInnerTexts()).toEqual([
      expect.stringMatching(/^pid .*4242.*4243/s),
      expect.stringMatching(/^signal .*TERM.*HUP/s),
    ])
    expect(await first.isDisabled()).toBe(false)
    await on.page.getByRole('button', { name: 'Edit as JSON' }).click()
    const json = on.page.getByLabel('Arguments, as JSON')
    expect(JSON.parse(await json.inputValue())).toEqual({ ...args, pid: 4_243, signal: 'HUP' })
    await json.fill(JSON.stringify({ ...args, pid: 7 }))
    await on.page.getByRole('button', { name: 'Edit as a form' }).click()
    expect(await pid.inputValue()).toBe('7')
    expect(on.page.complaints).toEqual([])
  }
})

test('an unsent denial survives a reload, and is removed once it is sent', async () => {
  const id = await planAsked(on.spine)
  await opened(id)
  const words = on.page.getByRole('textbox', { name: /In your words/ })
  await on.page.getByRole('button', { name: 'Deny…' }).click()
  await words.fill('backups run until four')
  await on.page.reload()
  await on.page.getByText('Exact arguments').waitFor()
  expect(await words.inputValue()).toBe('backups run until four')
  await on.page.getByRole('radio', { name: 'wrong time' }).check()
  await on.page.getByRole('button', { name: 'Deny', exact: true }).click()
  await on.page.getByText('Denied: nothing was changed.').waitFor()
  expect(await on.page.evaluate('Object.keys(sessionStorage).filter((key) => key.startsWith("draft"))')).toEqual([])
})

test('an API that freezes and dies under an unsent denial loses no word of it, the page shows the failure, and the denial is sent once', async () => {
  const id = await planAsked(on.spine)
  on.page = await signedIn(on.browser, on.spine)
  await on.page.clock.install()
  await on.page.goto(`${on.spine.url}/approvals/${id}`)
  await hears(on.page)
  const words = on.page.getByRole('textbox', { name: /In your words/ })
  const why = on.page.getByRole('radio', { name: 'wrong time' })
  const send = on.page.getByRole('button', { name: 'Deny', exact: true })
  const kept = async () => [await words.inputValue(), await why.isChecked()]
  await on.page.getByRole('button', { name: 'Deny…' }).click()
  await why.check()
  await words.fill('backups run')
  on.spine.signal('api', 'SIGSTOP')
  const away = on.page.getByRole('alert').filter({ hasText: 'This page was last updated at' })
  try {
    // Nobody presses anything, and nothing is asked: it is found out all the same.
    await on.page.clock.runFor(5_000)
    await away.getByText('within 5 s').waitFor()
    await words.fill('backups run until four')
    await send.click()
  } finally {
    await on.spine.kill('api')
  }
  await on.page.getByText(/^Your decision was not recorded/).waitFor()
  expect(await kept()).toEqual(['backups run until four', true])
  await screenshot(on.page, 'card-away-1440-light')
  await on.spine.start('api')
  await on.page.clock.runFor(10_000)
  await away.waitFor({ state: 'detached' })
  const decided = () => on.spine.db.selectFrom('approvalDecision').selectAll().where('approvalId', '=', id).execute()
  expect([await statusOf(id), await decided()]).toEqual(['pending', []])
  await on.page.reload()
  await send.waitFor()
  expect(await kept()).toEqual(['backups run until four', true])
  await send.click()
  await on.page.getByText('Denied: nothing was changed.').waitFor()
  expect(await decided()).toMatchObject([
    { decision: 'deny', category: 'wrong_time', reason: 'backups run until four' },
  ])
})

test('the attachments of a dry run are on the card: a picture with its name, a text with its first lines, and what was left out', async () => {
  const sent = [
    { name: 'replication lag by node.png', kind: 'png', base64: buildChart(640, 240).toString('base64') },
    {
      name: 'diff of the configuration',
      kind: 'text',
      text: '-max_connections: 100\n+max_connections: 200\n'.repeat(40),
    },
    {
      name: 'site.png',
      kind: 'png',
      base64: buildPng({ width: 9_000, height: 9_000, rows: Buffer.alloc(1) }).toString('base64'),
    },
  ]
  const brought = await takeAttachments(on.spine.db, sent)
  const dryRun = { possible: true, summary: 'Converge db-osl-1', details: {}, ...brought }
  const id = await asked(on.spine.db, await claimedIncident(on.spine.db), { tool: 'converge_shard', dryRun })
  for (const [width, scheme] of [
    [390, 'dark'],
    [1440, 'light'],
  ] as const) {
    await on.page?.context().close()
    const viewport = { width, height: 844 }
    on.page = await signedIn(on.browser, on.spine, 'approver', { viewport, colorScheme: scheme })
    await on.page.goto(`${on.spine.url}/approvals/${id}`)
    const picture = on.page.getByRole('img', { name: 'replication lag by node.png' })
    await picture.scrollIntoViewIfNeeded()
    const decoded =
      'document.querySelector(".attachment img").decode().then(() => document.querySelector(".attachment img").naturalWidth)'
    expect(await on.page.evaluate(decoded)).toBe(640)
    expect(await on.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    await on.page.getByText('site.png was left out: 9,000 x 9,000 px, at most 2,000.').waitFor()
    const text = on.page.getByRole('region', { name: 'diff of the configuration' })
    expect((await text.innerText()).trim().split('\n')).toHaveLength(6)
    await screenshot(on.page, `card-attached-${width}-${scheme}`)
    await on.page.getByRole('button', { name: 'Show all 80 lines' }).click()
    await on.page.getByRole('button', { name: 'Show the first lines' }).waitFor()
    const lines = async () => (await text.innerText()).trim().split('\n').length
    await eventually('all 80 lines', async () => (await lines()) === 80)
  }
  expect(on.page.complaints).toEqual([])
  // Without JavaScript it is the same picture.
  await on.page.goto(`${on.spine.url}/approvals/${id}/plain`)
  await on.page.getByRole('img', { name: 'replication lag by node.png' }).scrollIntoViewIfNeeded()
  expect(
    await on.page.evaluate(
      'document.querySelector("img").decode().then(() => document.querySelector("img").naturalWidth)',
    ),
  ).toBe(640)
  await screenshot(on.page, 'card-attached-plain')
})

test('a plan over 30 hosts with long names is legible on a phone, and begins with the current state', async () => {
  const id = await planAsked(on.spine, 30)
  for (const [width, scheme] of [
    [390, 'dark'],
    [1440, 'light'],
  ] as const) {
    await on.page?.context().close()
    const card = await opened(id, width, scheme)
    const drawn = card.locator(width > 820 ? 'svg.beside' : 'svg.stacked')
    expect(await drawn.locator('.move').count()).toBe(0)
    await drawn.getByText('now', { exact: true }).waitFor()
    const bars = await drawn.locator('.bar').count()
    await card.getByText(/^26 hosts are not touched/).waitFor()
    await on.page.evaluate('document.querySelector(".placement").scrollIntoView()')
    await screenshot(on.page, `plan-now-${width}-${scheme}`)
    await card.getByRole('button', { name: 'Last' }).click()
    await drawn.getByText(/preview: after/).waitFor()
    expect(await drawn.locator('.bar').count()).toBe(2 * bars)
    await card.getByRole('button', { name: 'show the untouched hosts' }).click()
    await on.page.evaluate('document.querySelector(".placement").scrollIntoView()')
    await screenshot(on.page, `plan-after-${width}-${scheme}`)
    expect(await on.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  }
  expect(on.page.complaints).toEqual([])
})

const writtenInPicture = `(() => {
  const { left, right } = document.querySelector('.placement svg').getBoundingClientRect()
  return [...document.querySelectorAll('.placement svg text')].map((each) => {
    const box = each.getBoundingClientRect()
    return { size: getComputedStyle(each).fontSize, isIn: box.width === 0 || (box.left >= left - 1 && box.right <= right + 1) }
  })
})()`

test('thirty moves in two racks are one line per two hosts, each VM is named, and nothing is cut', async () => {
  const id = await thirtyAsked(on.spine)
  for (const [width, scheme] of [
    [390, 'light'],
    [1440, 'dark'],
    [1440, 'light'],
  ] as const) {
    await on.page?.context().close()
    const card = await opened(id, width, scheme)
    await screenshot(on.page, `thirty-first-${width}-${scheme}`)
    await card.getByRole('button', { name: 'Last' }).click()
    const drawn = card.locator(width > 820 ? 'svg.beside' : 'svg.stacked')
    await drawn.getByText(/preview: after/).waitFor()
    await on.page.evaluate('document.querySelector(".placement").scrollIntoView()')
    await screenshot(on.page, `thirty-after-${width}-${scheme}`)
    expect(await drawn.locator('.vm.moved').count()).toBe(30)
    const lines = await drawn.locator('.move').count()
    if (width > 820) expect([lines > 2, lines <= 9]).toEqual([true, true])
    expect(await card.locator('.steps li').count()).toBe(30)
    for (const name of ['shop-worker-1', 'shop-worker-30'])
      await card.locator('.steps').getByText(name, { exact: true }).waitFor()
    // Text in the picture is as large as all small text, and ends within it.
    const texts = (await on.page.evaluate(writtenInPicture)) as { size: string; isIn: boolean }[]
    expect(texts.length).toBeGreaterThan(30)
    expect(texts.filter(({ size, isIn }) => size !== '12px' || !isIn)).toEqual([])
    await card.getByRole('button', { name: 'Previous' }).click()
    await card
      .getByRole('status')
      .getByText(/Step 30 of 30/)
      .waitFor()
    if (width > 820) expect(await drawn.locator('.move.runs').count()).toBe(1)
    await screenshot(on.page, `thirty-runs-${width}-${scheme}`)
  }
  expect(on.page.complaints).toEqual([])
})

test('a read that was hours old when the approval was asked is marked on the page as in every message', async () => {
  const id = await planAsked(on.spine)
  on.page = await signedIn(on.browser, on.spine, 'approver')
  await on.page.route(`**/api/v1/approvals/${id}`, async (route) => {
    const answer = await (await route.fetch()).json()
    const at = new Date(Date.parse(answer.requestedAt) - 5 * 3_600_000).toISOString()
    const look = { seq: 3, what: 'look', tool: 'get_host', about: [], found: 'host is off', isSaid: true, at }
    await route.fulfill({ json: { ...answer, evidence: [look] } })
  })
  await on.page.goto(`${on.spine.url}/approvals/${id}`)
  const against = on.page.locator('.why .against')
  await against.getByText(/^The newest check is from .*, 5 h 00 before the request\.$/).waitFor()
  await on.page.locator('.decide .stakes').getByText('5 h 00 before the request').waitFor()
  // VMs that stay down are drawn there, and said once.
  expect(await against.getByText('1 VM stays down').count()).toBe(1)
  await on.page.unrouteAll({ behavior: 'wait' })
})

test('the card of a command on a device shows what its rehearsal found, apart from what was not tried', async () => {
  const id = await asked(on.spine.db, await claimedIncident(on.spine.db), {
    tool: 'shell_eval',
    targets: [{ kind: 'node', id: 'web-7' }],
    identity: { command: 'systemctl restart nginx' },
  })
  const rehearsal = {
    told: ['runs as user root'],
    diff: '-worker_processes 1;\n+worker_processes 4;\n',
    checks: [{ argv: ['nginx', '-t'], exit_code: 0, output: 'syntax is ok\n' }],
    untried: ['systemctl was not tried: no way is known.'],
  }
  const dryRun = { possible: true, summary: 'run a text on web-7', details: { rehearsal } }
  await on.spine.owner
    .updateTable('approval')
    .set({
      dryRun: JSON.stringify(dryRun),
      reversible: false,
      args: JSON.stringify({ command: 'systemctl restart nginx', on: 'web-7' }),
    })
    .where('id', '=', id)
    .execute()
  for (const [width, scheme] of [
    [390, 'dark'],
    [1440, 'light'],
  ] as const) {
    await on.page?.context().close()
    on.page = await signedIn(on.browser, on.spine, 'approver', {
      viewport: { width, height: 844 },
      colorScheme: scheme,
    })
    await on.page.goto(`${on.spine.url}/approvals/${id}`)
    await on.page.getByRole('region', { name: 'Exact arguments' }).waitFor()
    const found = on.page.getByRole('region', { name: 'What the dry run found' })
    await found.waitFor()
    const text = await found.innerText()
    for (const line of ['runs as user root', '+worker_processes 4;', 'check nginx -t ended with 0', '  syntax is ok'])
      expect(text).toContain(line)
    expect(text).not.toContain('systemctl was not tried')
    await on.page.locator('.warning').getByText('systemctl was not tried: no way is known.').waitFor()
    await on.page.locator('.decide .cost').getByText('The action cannot be undone.').waitFor()
    await on.page.locator('section.cost').getByText('The action cannot be undone.').waitFor()
    await found.scrollIntoViewIfNeeded()
    await screenshot(on.page, `card-device-${width}-${scheme}`)
  }
})

test('a host that one witness alone reports dead is approved with a tick about it, and never while the host answers', async () => {
  const id = await planAsked(on.spine)
  const { dryRun } = await on.spine.owner
    .selectFrom('approval')
    .select('dryRun')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const witnesses = [{ who: 'the platform', sees: 'platform', says: 'down', at: null }]
  const deaths = ['host-1', 'host-2'].map((host) => ({
    ...{ host, witnesses, isForecast: false, verdict: 'unconfirmed', sentence: '' },
  }))
  const details = { ...dryRun.details, deaths }
  await on.spine.owner
    .updateTable('approval')
    .set({ dryRun: JSON.stringify({ ...dryRun, details }) })
    .where('id', '=', id)
    .execute()
  await on.spine.owner
    .insertInto('region')
    .values({ id: 'dead' })
    .onConflict((at) => at.doNothing())
    .execute()
  const size = { region: 'dead', rack: 'r', state: 'dead', ramMib: 1, cpuMc: 1 }
  await on.spine.owner
    .insertInto('host')
    .values(['host-1', 'host-2'].map((host) => ({ id: host, ...size })))
    .onConflict((at) => at.column('id').doUpdateSet({ state: 'dead' }))
    .execute()
  const card = await opened(id)
  await card.getByText(/^host-1: the platform says that it is down/).waitFor()
  await screenshot(on.page, 'card-dead-hosts')
  const become = (state: 'live' | 'dead') =>
    on.spine.owner.updateTable('host').set({ state }).where('id', '=', 'host-1').execute()
  await become('live')
  await on.page.reload()
  await on.page
    .locator('.decide')
    .getByText('This plan cannot be approved while a source has seen host-1 alive.')
    .waitFor()
  expect(await on.page.getByRole('button', { name: 'Approve…' }).isDisabled()).toBe(true)
  expect(await on.page.getByRole('button', { name: 'Deny…' }).isDisabled()).toBe(false)
  await become('dead')
  await on.page.reload()
  await on.page.getByRole('button', { name: 'Approve…', disabled: false }).click()
  const yes = on.page.getByRole('button', { name: 'Yes, approve' })
  await on.page.getByLabel('I checked myself that host-1 is off and stays off.').check()
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  expect(await yes.isDisabled()).toBe(true)
  await on.page.getByLabel('I checked myself that host-2 is off and stays off.').check()
  await screenshot(on.page, 'card-dead-hosts-armed')
  await yes.click()
  await eventually('the decision', async () => {
    const row = await on.spine.owner.selectFrom('approval').select('status').where('id', '=', id).executeTakeFirst()
    return row?.status === 'approved'
  })
})
