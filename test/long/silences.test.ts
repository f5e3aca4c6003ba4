import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { readAllSilences } from '../../api/read-silences.ts'
import { ensureOperator } from '../../db/access/tokens.ts'
import { acceptSitePolicy, readSitePolicies, takeSitePolicy } from '../../db/site-policies.ts'
import type { SiteDecision } from '../../domain/site-decision.ts'
import { useApi } from '../support/api.ts'
import { eventually } from '../support/directory.ts'
import { proposeStart, sound } from '../support/proposed-start.ts'
import { type RealAlertmanager, startAlertmanager } from './real-servers.ts'

/** A write that the site lets run, asked about while people have silenced its alert. */
/** Each start is of another one: what runs holds its target. */
const machines = Array.from({ length: 500 }, (_, n) => `vm-${n + 1}`)
const policy = `version: 1
rules:
  - { name: theirs, silenced: true, action: ask }
  - { name: starts, tool: vm_start, resource: { kind: vm, id: [${machines.join()}] }, action: run }
`
const api = useApi()
let alertmanager: RealAlertmanager
let alerts = 0

beforeAll(async () => {
  alertmanager = await startAlertmanager({ url: 'http://127.0.0.1:9/hook', token: 'none' })
  await api.put('/sources/am', { body: { kind: 'alertmanager', url: alertmanager.url } })
  await takeSitePolicy(api.db, sound(policy))
  const { waiting } = await readSitePolicies(api.db)
  const admin = { operatorId: await ensureOperator(api.db, 'root', 'admin'), name: 'root' }
  await acceptSitePolicy(api.db, waiting?.digest ?? '', admin)
})
afterAll(async () => await alertmanager?.stop())

async function call(path: string, method: string, body?: object): Promise<Record<string, string>> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`${alertmanager.url}/api/v2${path}`, {
    ...{ method, headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect([answer.status, path]).toEqual([200, path])
  return JSON.parse((await answer.text()) || '{}') as Record<string, string>
}
type Matchers = { name: string; value: string; isRegex: boolean; isEqual: boolean }[]
const silence = async (matchers: Matchers, startsInMs = 0): Promise<string> => {
  const startsAt = new Date(Date.now() + startsInMs).toISOString()
  const endsAt = new Date(Date.now() + startsInMs + 3_600_000).toISOString()
  const made = await call('/silences', 'POST', { matchers, startsAt, endsAt, createdBy: 'berit', comment: 'new disk' })
  return made.silenceID as string
}
const labels = { alertname: 'VmStopped', instance: 'vm-101:9100', env: 'prod' }

const siteOf = ({ details = {} }: Awaited<ReturnType<typeof judge>>) => details.site as SiteDecision

/** What becomes of the start, as the silences are now. */
async function judge(own: Record<string, string> = labels) {
  await readAllSilences(api.api.deps)
  alerts += 1
  const alert = { fingerprint: `fp-${alerts}`, name: own.alertname, labels: own } as never
  return (await proposeStart(api.db, { id: `vm-${alerts}`, environment: { AGENT_TRUST: 'act' }, alert })).judged
}

test('a silence turns an unasked write into a question that names it, and after its expiry the write runs again', async () => {
  expect(await judge()).toMatchObject({ verdict: 'run', code: 'SITE_RUNS' })
  const id = await silence([{ name: 'instance', value: 'vm-10[0-9]:.*', isRegex: true, isEqual: true }])
  const judged = await judge()
  expect(judged).toMatchObject({ verdict: 'ask', code: 'SITE_ASKS' })
  expect(siteOf(judged).silence).toMatchObject({
    ...{ is: 'silenced', source: 'am', id, createdBy: 'berit', comment: 'new disk', isSupposed: false },
  })
  await call(`/silence/${id}`, 'DELETE')
  expect((await judge()).code).toBe('SITE_RUNS')
})

test('a future silence is read, and asks from its beginning', async () => {
  const id = await silence([{ name: 'env', value: 'prod', isRegex: false, isEqual: true }], 2_000)
  await eventually('the silence to hold', async () => (await judge()).code === 'SITE_ASKS')
  await call(`/silence/${id}`, 'DELETE')
})

test.each<[Matchers[number]]>([
  [{ name: 'env', value: 'prod', isRegex: false, isEqual: true }],
  [{ name: 'env', value: 'test', isRegex: false, isEqual: false }],
  [{ name: 'team', value: '', isRegex: false, isEqual: true }],
  [{ name: 'team', value: '.+', isRegex: true, isEqual: false }],
  [{ name: 'instance', value: 'vm-101', isRegex: true, isEqual: true }],
  [{ name: 'instance', value: '(?i)VM-\\d+:9100', isRegex: true, isEqual: true }],
  [{ name: 'instance', value: 'vm-101|vm-102', isRegex: true, isEqual: true }],
  [{ name: 'instance', value: 'vm-(101|102):\\w{4}', isRegex: true, isEqual: true }],
])('Alertmanager and a ruling agree on %j', async (matcher) => {
  // With one that has to hold, as Alertmanager wants it.
  const id = await silence([{ name: 'alertname', value: 'VmStopped', isRegex: false, isEqual: true }, matcher])
  await alertmanager.raise(labels, 'It is.')
  const silencedBy = await eventually('the alert to be looked at', async () => {
    const all = (await call('/alerts', 'GET')) as unknown as { labels: object; status: { silencedBy: string[] } }[]
    const found = all.find((each) => JSON.stringify(each.labels) === JSON.stringify(sorted(labels)))
    return found && { ids: found.status.silencedBy }
  })
  const named = siteOf(await judge()).silence
  expect(named?.is === 'silenced' ? [named.id] : []).toEqual(silencedBy.ids)
  await call(`/silence/${id}`, 'DELETE')
})

const sorted = (given: Record<string, string>) => Object.fromEntries(Object.entries(given).sort())
