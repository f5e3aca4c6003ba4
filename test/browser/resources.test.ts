import { expect, test } from '@jest/globals'
import { screenshot, signedIn, useBrowser } from './browser.ts'

const on = useBrowser()

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

test.each([
  [1440, 'light'],
  [390, 'dark'],
] as const)(
  'a person pastes a body, sees what it is about, and follows it to the resource (%i px, %s)',
  async (width, colorScheme) => {
    const stored = await fetch(`${on.spine.url}/api/v1/inventory`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${on.spine.tokens.admin}`, 'content-type': 'application/json' },
      body: JSON.stringify(inventory),
    })
    expect(stored.status).toBe(200)
    await on.spine.post('/ingest/alertmanager', JSON.parse(body), { token: on.spine.tokens.ingest })
    on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
    await on.page.goto(`${on.spine.url}/alerts`)
    await on.page.getByText('Try a body').click()
    await on.page.getByLabel('Body, as the source sends it').fill(body)
    await on.page.getByRole('button', { name: 'Explain' }).click()
    const found = on.page.getByRole('link', { name: 'service_unit:web-1:nginx.service' })
    await found.waitFor()
    await screenshot(on.page, `try-${width}-${colorScheme}`)
    expect(await on.page.getByText('instance=web-99 is not known').count()).toBeGreaterThan(0)
    await found.click()
    await on.page.getByRole('heading', { name: 'service_unit:web-1:nginx.service' }).waitFor()
    await on.page.getByText('NodeSystemdServiceFailed').first().waitFor()
    await screenshot(on.page, `resource-${width}-${colorScheme}`)
    await on.page.getByRole('link', { name: 'node:web-1', exact: true }).click()
    await on.page.getByRole('heading', { name: 'node:web-1' }).waitFor()
    await on.page.goto(`${on.spine.url}/resources`)
    await on.page.getByRole('table').waitFor()
    await screenshot(on.page, `resources-${width}-${colorScheme}`)
    expect(on.page.complaints).toEqual([])
  },
  120_000,
)
