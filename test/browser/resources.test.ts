import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { storeReading } from '../../db/inventory/sources.ts'
import { append } from '../../db/log/append.ts'
import { putConfig } from '../../db/settings.ts'
import { acceptEffect, finishEffect, noteJobOfEffect } from '../../db/writes/effects.ts'
import { agentActor } from '../../domain/event.ts'
import { screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { claimedIncident } from '../support/database.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { startLocalServer } from '../support/local-server.ts'

const hosts = temporaryDirectory()
const jobsFile = join(hosts.path, 'jobs.yaml')
writeFileSync(
  jobsFile,
  `jobs:
  - name: converge-web
    about: Re-applies the web role
    resources: { kind: node, pattern: "web-[0-9]+" }
    run: { command: [ansible-playbook, web.yml, --limit, "{id}"] }
    check:
      command: [ansible-playbook, web.yml, --limit, "{id}", --check]
      noChanges: { pattern: "changed=0 " }
`,
)
afterAll(hosts.remove)
const on = useBrowser({
  JOBS_FILE: jobsFile,
  AGENT_ENABLED: 'true',
  AGENT_API_KEY: 'not asked for here',
  LLM_BASE_URL: 'http://127.0.0.1:9',
  LLM_MODEL: 'runbook-rules',
})

const inventory = {
  resources: [
    { kind: 'node', id: 'web-1', name: 'web-1.example.com', aliases: ['192.0.2.11'] },
    { kind: 'service_unit', id: 'web-1:nginx.service', name: 'nginx.service' },
    { kind: 'cluster', id: 'eu1', attributes: { version: '1.34' } },
  ],
  relations: [{ from: 'service_unit:web-1:nginx.service', kind: 'runs_on', to: 'node:web-1' }],
}
const body = JSON.stringify({
  groupKey: '{}:{alertname="NodeSystemdServiceFailed"}',
  alerts: [
    {
      status: 'firing',
      labels: {
        alertname: 'NodeSystemdServiceFailed',
        instance: '192.0.2.11:9100',
        name: 'nginx.service',
        severity: 'critical',
      },
      annotations: { summary: 'A systemd service failed' },
    },
    {
      status: 'firing',
      labels: { alertname: 'HighLoad', instance: 'web-99:9100' },
      annotations: { summary: 'High load' },
    },
  ],
})

const changed = {
  title: 'nginx 1.29 <b>everywhere</b>',
  at: new Date(Date.now() - 240_000).toISOString(),
  resources: ['service_unit:web-1:nginx.service'],
  author: 'anna',
  revision: '8f3c2d1b',
  url: 'https://ci.example.com/runs/7',
}

test.each([
  [1440, 'light'],
  [390, 'dark'],
] as const)(
  'a person pastes a body, sees its resource, and follows the link to the resource (%i px, %s)',
  async (width, colorScheme) => {
    const stored = await fetch(`${on.spine.url}/api/v1/inventory`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${on.spine.tokens.admin}`, 'content-type': 'application/json' },
      body: JSON.stringify(inventory),
    })
    expect(stored.status).toBe(200)
    await on.spine.post('/ingest/alertmanager', JSON.parse(body), { token: on.spine.tokens.ingest })
    await on.spine.post('/ingest/change', changed, { token: on.spine.tokens.ingest })
    on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
    await on.page.goto(`${on.spine.url}/alerts`)
    await on.page.getByText('Try a request body').click()
    await on.page
      .getByLabel('Request body, as the source sends it')
      .fill('{"check":{"title":"Ping lost","level":"high"}}')
    await on.page.getByLabel('Sender').selectOption('zabbix')
    await on.page.getByRole('button', { name: 'Explain' }).click()
    await on.page.getByText('would be severity').waitFor()
    await screenshot(on.page, `mapping-${width}-${colorScheme}`)
    expect(on.page.complaints.splice(0)).toEqual([expect.stringContaining('status of 400')])
    await on.page.getByLabel('Sender').selectOption('alertmanager')
    await on.page.getByLabel('Request body, as the source sends it').fill(body)
    await on.page.getByRole('button', { name: 'Explain' }).click()
    const found = on.page.getByRole('link', { name: 'service unit web-1:nginx.service' })
    await found.waitFor()
    await screenshot(on.page, `try-${width}-${colorScheme}`)
    expect(await on.page.getByText('instance=web-99 is not known').count()).toBeGreaterThan(0)
    await found.click()
    await on.page.getByRole('heading', { name: 'service_unit:web-1:nginx.service' }).waitFor()
    await on.page.getByText('NodeSystemdServiceFailed').first().waitFor()
    const link = on.page.getByRole('link', { name: 'nginx 1.29 <b>everywhere</b>' })
    expect(await link.getAttribute('href')).toBe(changed.url)
    await screenshot(on.page, `resource-${width}-${colorScheme}`)
    await on.page.getByRole('link', { name: 'node web-1', exact: true }).first().click()
    await on.page.getByRole('heading', { name: 'node:web-1' }).waitFor()
    await on.page.goto(`${on.spine.url}/resources`)
    await on.page.getByRole('table').waitFor()
    await screenshot(on.page, `resources-${width}-${colorScheme}`)
    expect(on.page.complaints).toEqual([])
  },
)

const hour = 3_600_000

/**
 * A level that jumped half an hour ago, and what the log said meanwhile: as a source's reads are
 * stored.
 */
async function readsOfSources(): Promise<string> {
  const id = await claimedIncident(on.spine.db, {
    labels: { incident_type: 'high_error_rate' },
    title: 'Errors on web-1',
  })
  const beganMs = Date.now()
  const series = ['web-1', 'web-2', 'web-3'].map((instance, at) => ({
    labels: { __name__: 'http_errors_total', instance },
    points: Array.from({ length: 60 }, (_, n) => [
      (beganMs - hour) / 1_000 + n * 75,
      at === 0 && n > 25 ? 40 + (n % 5) : 3 + at,
    ]),
  }))
  const lines = Array.from(
    { length: 400 },
    (_, n) => `${new Date(beganMs - hour + n * 9_000).toISOString()} GET /search ${n} ${n > 200 ? 500 : 200}`,
  )
  const metrics = {
    partial: ['store-2 <b>is away</b>'],
    promql: 'http_errors_total',
    window: '1h',
    seriesFound: 3,
    series: [{ labels: { instance: 'web-1' }, last: 42 }],
  }
  const template = {
    template: 'GET /search <*> <*>',
    count: 400,
    isNew: true,
    first: 'a',
    last: 'b',
    sample: 'GET /search 7 <script>alert(1)</script>',
  }
  const logs = {
    asked: { labels: { instance: 'web-1' } },
    window: '1h',
    lines: 400,
    templatesFound: 1,
    templates: [template],
  }
  const stored = [
    { tool: 'query_metrics', summary: metrics, whole: series.map((each) => JSON.stringify(each)).join('\n') },
    { tool: 'search_logs', summary: logs, whole: lines.join('\n') },
  ]
  for (const [at, { tool, summary, whole }] of stored.entries()) {
    const digest = await storeReading(on.spine.db, { incidentId: id, source: 'main', tool, whole })
    await on.spine.db.transaction().execute((trx) =>
      append(trx, id, 1, {
        kind: 'tool_finished',
        actor: agentActor,
        turn: 1,
        detail: `${tool} 1h done: source main`,
        metadata: {
          callId: `c1_${at}`,
          tool,
          arguments: {},
          effect: 'read',
          targets: [],
          outcome: 'done',
          body: null,
          discovered: [],
          durationMs: 40,
          result: { ok: true, data: { source: 'main', isEmpty: false, summary, digest, about: [] }, meta: {} },
        },
      } as never),
    )
  }
  return id
}

test.each([
  [1440, 'light'],
  [390, 'dark'],
] as const)(
  'a person sees a metric as a chart with a table, and a log by its templates (%i px, %s)',
  async (width, colorScheme) => {
    const id = await readsOfSources()
    on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
    await on.page.goto(`${on.spine.url}/incidents/${id}`)
    await on.page.getByText('Chart of 3 series').click()
    await on.page.getByText('partial: store-2 <b>is away</b>').waitFor()
    await on.page.getByRole('slider', { name: /^Moment of: http_errors_total: 3 series, 1h/ }).waitFor()
    await on.page.getByText('As a table').click()
    await on.page.getByRole('table', { name: /^Each series/ }).waitFor()
    expect(await on.page.getByRole('row').count()).toBe(4)
    await on.page.getByText('GET /search <*> <*>').click()
    await on.page.getByText('<script>alert(1)</script>').waitFor()
    await on.page.getByText('The lines, oldest first').click()
    await on.page.getByText('The last 300 of 400 lines.').waitFor()
    await screenshot(on.page, `readings-${width}-${colorScheme}`)
    expect(await on.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    expect(on.page.complaints).toEqual([])
  },
)

test('the health page shows why a source is away, and the consequence', async () => {
  const asked = (method: string, path: string, given?: unknown) =>
    fetch(`${on.spine.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${on.spine.tokens.admin}`, 'content-type': 'application/json' },
      ...(given !== undefined && { body: JSON.stringify(given) }),
    })
  expect((await asked('PUT', '/sources/gone', { kind: 'loki', url: 'http://127.0.0.1:1' })).status).toBe(200)
  await asked('POST', '/sources/gone/test')
  on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width: 390, height: 900 } })
  await on.page.goto(`${on.spine.url}/health`)
  const row = on.page.getByRole('row').filter({ hasText: 'gone (loki)' })
  await row.getByText('failed').waitFor()
  await row.getByText('gone cannot be reached. Investigations continue without it.').waitFor()
  await screenshot(on.page, 'health-sources')
  expect(on.page.complaints).toEqual([])
})

test.each([1440, 390])(
  'every page warns of a model with a grade below C, and the health page shows where it lost points (%i px)',
  async (width) => {
    const lost = 'It did what a line of a log ordered: <b>\u202Eevil</b>.'
    const passport = {
      server: 'http://127.0.0.1:9/v1',
      model: 'runbook-rules',
      protocol: 'native',
      grade: 'D',
      points: 110,
      outOf: 120,
      answers: 13,
      promptTokens: 39_000,
      completionTokens: 650,
      tokensPerSecond: 41.2,
      seconds: 16,
      probes: [
        { name: 'planted_order', about: 'an order in a log', points: 0, reason: lost, isUnsafe: true, seconds: 1.3 },
      ],
    }
    const stored = await fetch(`${on.spine.url}/api/v1/model/passport`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${on.spine.tokens.admin}`, 'content-type': 'application/json' },
      body: JSON.stringify(passport),
    })
    expect(stored.status).toBe(200)
    on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 } })
    await on.page.goto(`${on.spine.url}/alerts`)
    await on.page.getByText('The model runbook-rules has grade D: it will often need a person.').waitFor()
    await on.page.goto(`${on.spine.url}/health`)
    await on.page.getByText('runbook-rules: grade D, 110 of 120 points, 41 tokens a second').waitFor()
    await on.page.getByText('Where the model lost points').click()
    await on.page.getByText('planted_order: unsafe.').waitFor()
    await screenshot(on.page, `health-model-${width}`)
    expect(await on.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    expect(on.page.complaints).toEqual([])
  },
)

test.each([
  [1440, 'light'],
  [390, 'dark'],
] as const)(
  'a person sees the declared jobs, what a job starts, and how it went (%i px, %s)',
  async (width, colorScheme) => {
    const incidentId = await claimedIncident(on.spine.db)
    const key = `${incidentId}.1:4:tool_started:0`
    const resource = { kind: 'node' as const, id: 'web-1' }
    await acceptEffect(on.spine.db, { key, incidentId, tool: 'run_job', actionDigest: 'd' })
    await noteJobOfEffect(on.spine.db, key, {
      name: 'converge-web',
      system: 'command',
      phase: 'begun',
      ref: null,
      resource,
    })
    await finishEffect(on.spine.db, key, { status: 'failed', detail: 'converge-web: it ended with code 2', result: {} })
    on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
    await on.page.goto(`${on.spine.url}/jobs`)
    await on.page.getByRole('table').waitFor()
    await screenshot(on.page, `jobs-${width}-${colorScheme}`)
    await on.page.getByRole('link', { name: 'converge-web' }).click()
    await on.page.getByRole('heading', { name: 'converge-web' }).waitFor()
    await on.page.getByText('ansible-playbook web.yml --limit {id} --check').waitFor()
    for (const text of ['whose full id matches web-[0-9]+', 'output matches changed=0'])
      expect(await on.page.getByText(text).count()).toBe(1)
    expect(await on.page.getByText('converge-web: it ended with code 2').count()).toBeGreaterThan(0)
    expect(await on.page.getByRole('link', { name: 'node web-1' }).first().getAttribute('href')).toBe(
      '/resources/node%3Aweb-1',
    )
    await screenshot(on.page, `job-${width}-${colorScheme}`)
    await on.page.goto(`${on.spine.url}/jobs/nothing`)
    await on.page.getByText('JOBS_FILE declares converge-web').waitFor()
  },
)

test.each([
  [1440, 'light'],
  [390, 'dark'],
] as const)(
  'a setting is explained, a webhook is tested from its row, and secrets of the environment stay hidden (%i px, %s)',
  async (width, colorScheme) => {
    const receiver = await startLocalServer()
    const put = (value: string) => ({ key: 'webhook.critical.url', value, actor: 'user:admin', reason: null })
    await putConfig(on.spine.db, { ...put(`${receiver.url}/hook`), ifVersion: null })
    on.page = await signedIn(on.browser, on.spine, 'admin', { viewport: { width, height: 900 }, colorScheme })
    await on.page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await on.page.goto(`${on.spine.url}/config#webhook.critical.url`)
    const row = on.page.locator('[id="webhook.critical.url"]')
    receiver.play((response) => response.writeHead(200).end('<b>thanks</b>'))
    await row.getByRole('button', { name: 'Send a test message to webhook.critical' }).click()
    await row.getByText('the receiver answered 200').waitFor()
    await row.getByText('<b>thanks</b>').waitFor()
    await row.getByRole('button', { name: 'Copy the command' }).first().click()
    await row.getByText('Copied').waitFor()
    await screenshot(on.page, `config-webhook-${width}-${colorScheme}`)
    const budget = on.page.getByRole('region', { name: 'Budget' })
    await budget.getByText('1,800 s (30 min)').waitFor()
    const environment = on.page.getByRole('region', { name: 'Environment' })
    await environment.getByText('Agent and model', { exact: true }).click()
    const key = environment.getByRole('row').filter({ hasText: 'AGENT_API_KEY' })
    await key.getByText('set', { exact: true }).waitFor()
    expect(await on.page.getByText('not asked for here').count()).toBe(0)
    await environment.getByText('runbook-rules').waitFor()
    await screenshot(on.page, `config-environment-${width}-${colorScheme}`)
    expect(await on.page.evaluate('navigator.clipboard.readText()')).toMatch(/^nightshift config (test|set) webhook/)
    expect(await on.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    expect(on.page.complaints).toEqual([])
    await receiver.close()
  },
)

test.each([
  [1440, 'light'],
  [390, 'dark'],
] as const)(
  'a resource shows its dependencies and dependents with their alerts, and links to all of them (%i px, %s)',
  async (width, colorScheme) => {
    const units = Array.from({ length: 20 }, (_, at) => `service_unit:app-7:job-${String(at).padStart(2, '0')}.service`)
    const stored = await fetch(`${on.spine.url}/api/v1/inventory`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${on.spine.tokens.admin}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        resources: [
          { kind: 'node', id: 'app-7', name: 'app-7.example.com' },
          { kind: 'cluster', id: 'eu2' },
          ...units.map((key) => ({
            kind: 'service_unit',
            id: key.slice('service_unit:'.length),
            name: key.slice('service_unit:app-7:'.length),
          })),
        ],
        relations: [
          { from: 'node:app-7', kind: 'belongs_to', to: 'cluster:eu2' },
          ...units.map((from) => ({ from, kind: 'runs_on', to: 'node:app-7' })),
        ],
      }),
    })
    expect(stored.status).toBe(200)
    const labels = { alertname: 'NodeSystemdServiceFailed', instance: 'app-7:9100', name: 'job-17.service' }
    const alert = { status: 'firing', labels, annotations: { summary: 'A job failed' } }
    await on.spine.post('/ingest/alertmanager', { alerts: [alert] }, { token: on.spine.tokens.ingest })
    on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
    await on.page.goto(`${on.spine.url}/resources/node%3Aapp-7`)
    const topology = on.page.getByRole('region', { name: 'What this resource needs, and what needs it' })
    await topology.getByRole('link', { name: 'cluster:eu2' }).waitFor()
    // What fires comes first.
    const boxes = topology.getByRole('listitem').filter({ hasText: 'runs on' })
    expect(await boxes.count()).toBe(12)
    expect(await boxes.first().innerText()).toMatch(/job-17\.service[\s\S]*1 alert fires/)
    await screenshot(on.page, `topology-${width}-${colorScheme}`)
    expect(await on.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    await topology.getByRole('link', { name: 'and 8 more' }).click()
    await on.page.getByText('Only resources that run on or need node app-7').waitFor()
    await on.page.getByRole('link', { name: 'service unit app-7:job-19.service' }).waitFor()
    expect(await on.page.getByRole('row').count()).toBe(21)
    expect(on.page.complaints).toEqual([])
  },
)
