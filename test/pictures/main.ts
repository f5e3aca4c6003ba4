import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { BrowserContextOptions } from 'playwright-core'
import type { Approval } from '../../domain/approval.ts'
import { ensureWeb } from '../../start/web.ts'
import { startTestServers } from '../support/broker.ts'
import { launch } from '../support/chromium.ts'
import { type Spine, startSpine } from '../support/spine.ts'

const usage = `npm run pictures -- [options]     plays a night in the lab, and takes the pictures of it

  --out FOLDER   where to (docs/images)
  --all          every page, light and dark, 1440 and 390 pixels wide, instead of those that the docs show
`

type Scheme = 'light' | 'dark'
type Shot = { name: string; path: string; scheme: Scheme; width: number }

/** What the night leaves to look at. */
type Night = { waiting: string; approval: string; repaired: string }

async function main(): Promise<string> {
  const { values } = parseArgs({
    options: { out: { type: 'string' }, all: { type: 'boolean' }, help: { type: 'boolean' } },
  })
  if (values.help) {
    console.log(usage)
    process.exit(0)
  }
  const out = values.out ?? join(import.meta.dirname, '../../docs/images')
  mkdirSync(out, { recursive: true })
  await ensureWeb()
  const servers = await startTestServers()
  process.env.NIGHTSHIFT_TEST_SERVERS = servers.address
  const spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
  try {
    const night = await playNight(spine)
    await takePictures(spine, values.all ? everyPage(night) : ofTheDocs(night), out)
  } finally {
    await spine.stop()
    await servers.stop()
  }
  return out
}

/** A repair that ran unasked, and a host that is lost: its plan waits for a person. */
async function playNight(spine: Spine): Promise<Night> {
  await spine.until('the inventory', async () => {
    const { items } = await spine.get<{ items: unknown[] }>('/resources?q=node-web&kind=node')
    return items.length > 0
  })
  await spine.lab.break('replication_lag', 'db-osl-1')
  const repaired = await spine.incident('replication_lag', 'resolved')
  await spine.lab.break('host_lost', 'host-osl-1')
  const asked = await spine.until('the plan that waits', async () =>
    (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items.find(
      ({ tool }) => tool === 'execute_migration',
    ),
  )
  return { waiting: asked.incidentId, approval: asked.id, repaired: repaired.id }
}

const shot = (name: string, path: string, scheme: Scheme = 'light', width = 1440): Shot => ({
  name,
  path,
  scheme,
  width,
})

const ofTheDocs = ({ waiting, approval, repaired }: Night): Shot[] => [
  shot('incident-waits-light', `/incidents/${waiting}`),
  shot('incident-waits-dark', `/incidents/${waiting}`, 'dark'),
  shot('incident-light', `/incidents/${repaired}`),
  shot('approval-light', `/approvals/${approval}`),
  shot('approval-phone-dark', `/approvals/${approval}`, 'dark', 390),
  shot('approvals-light', '/approvals'),
  shot('home-light', '/home'),
  shot('home-phone-dark', '/home', 'dark', 390),
  shot('postmortem-light', `/incidents/${repaired}/postmortem`),
  shot('topology-light', '/resources/host:host-osl-1'),
  shot('audit-dark', '/audit', 'dark'),
  shot('people-light', '/people'),
  shot('usage-dark', '/usage', 'dark'),
]

const lists = [
  ...[
    'home',
    'incidents',
    'shift',
    'approvals',
    'alerts',
    'resources',
    'devices',
    'knowledge',
    'jobs',
    'trust',
    'reports',
  ],
  ...['usage', 'gaps', 'health', 'config', 'people', 'tokens', 'audit'],
]

function everyPage({ waiting, approval, repaired }: Night): Shot[] {
  const pages: [string, string][] = [
    ...lists.map((each): [string, string] => [each, `/${each}`]),
    ...(
      [
        ['incident-waits', waiting],
        ['incident', repaired],
      ] as const
    ).map(([name, id]): [string, string] => [name, `/incidents/${id}`]),
    ['approval', `/approvals/${approval}`],
    ['postmortem', `/incidents/${repaired}/postmortem`],
    ['resource-host', '/resources/host:host-osl-1'],
    ['resource-node', '/resources/node:node-web-osl-1a'],
    ['trust-pair', '/trust/replication_lag~converge_shard'],
  ]
  return pages.flatMap(([name, path]) =>
    (['light', 'dark'] as const).flatMap((scheme) =>
      [1440, 390].map((width) => shot(`${name}-${width}-${scheme}`, path, scheme, width)),
    ),
  )
}

async function takePictures(spine: Spine, shots: readonly Shot[], out: string): Promise<void> {
  const browser = await launch()
  const cookies = [await sessionOf(spine)]
  try {
    for (const { name, path, scheme, width } of shots) {
      const viewport = { width, height: width < 500 ? 844 : 900 }
      const options: BrowserContextOptions = { viewport, colorScheme: scheme, reducedMotion: 'reduce' }
      const context = await browser.newContext(options)
      await context.addCookies(cookies)
      const page = await context.newPage()
      await page.goto(`${spine.url}${path}`)
      await page.locator('h1').first().waitFor()
      // The stream runs, and all that the page asked for is there.
      for (const word of ['Connecting…', /^Loading /]) await page.getByText(word).first().waitFor({ state: 'detached' })
      await page.screenshot({ path: join(out, `${name}.png`) })
      await context.close()
    }
  } finally {
    await browser.close()
  }
}

async function sessionOf(spine: Spine) {
  const answer = await fetch(`${spine.url}/auth/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: spine.tokens.admin }),
  })
  const [, name = '', value = ''] = /^([^=]+)=([^;]+)/.exec(answer.headers.get('set-cookie') ?? '') ?? []
  const { hostname: domain } = new URL(spine.url)
  return { name, value, domain, path: '/', secure: true, httpOnly: true, sameSite: 'Strict' as const }
}

const folder = await main()
console.log(`The pictures are in ${folder}.`)
