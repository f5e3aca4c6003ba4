import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FaultName } from '../../lab/state.ts'
import type { Spine } from '../support/spine.ts'
import { fileIn } from './command-blocks.ts'

/**
 * The site where a page's commands are typed, one after the other, and the typing person's folder.
 */
export type Site = {
  spine: Spine
  folder: string
  /** Where the API reads runbooks and the site's policy. */
  knowledge: string
  /** What a shell says to a line, as an admin. */
  type(line: string): Promise<{ code: number | null; said: string }>
}

/** A page whose commands are run word for word, in its order. */
type Walk = {
  page: string
  /** What a reader puts in the place of these words; the same one all over the page. */
  fill?: Record<string, (site: Site) => Promise<string> | string>
  /** What happens on the site before a command that begins so. */
  before?: Record<string, (site: Site) => Promise<void>>
}

const firstWeek = 'docs/how-to/first-week.md'
const policyPage = 'docs/reference/policy.md'
const runbooks = 'docs/how-to/write-runbooks.md'

/** What the pages have their reader write before Nightshift reads it. */
export function writeFiles({ folder, knowledge }: Pick<Site, 'folder' | 'knowledge'>): void {
  writePolicy({ folder, knowledge }, firstWeek)
  const runbook = join(knowledge, 'printer-queue')
  mkdirSync(runbook)
  writeFileSync(join(runbook, 'SKILL.md'), fileIn(runbooks, '', 1))
  writeFileSync(join(folder, 'address.txt'), 'https://teams.example.com/hook\n')
  cpSync('examples', join(folder, 'examples'), { recursive: true })
}

function writePolicy({ folder, knowledge }: Pick<Site, 'folder' | 'knowledge'>, page: string): void {
  for (const place of [folder, knowledge]) writeFileSync(join(place, 'policy.yaml'), fileIn(page, 'yaml'))
}

const prepare = (lines: string[]) => async (site: Site) => {
  for (const line of lines) {
    const { code, said } = await site.type(line)
    if (code !== 0) throw new Error(`${line}: ${said}`)
  }
}

const breaks =
  (fault: FaultName, target: string) =>
  async ({ spine }: Site) => {
    await spine.lab.heal()
    const before = new Set((await spine.incidents()).map(({ id }) => id))
    await spine.lab.break(fault, target)
    await spine.until('its incident', async () => (await spine.incidents()).some(({ id }) => !before.has(id)))
  }

type Recorded = { incidentId: string; callId: string; shadowed: boolean }

/** A write that was recorded in shadow, and its incident once that has ended. */
async function recorded({ spine }: Site): Promise<Recorded> {
  const call = await spine.until('a write in shadow', async () => {
    const { calls } = await spine.get<{ calls: Recorded[] }>('/trust/replication_lag/converge_shard')
    return calls.find(({ shadowed }) => shadowed)
  })
  await spine.until('the end of its incident', async () => {
    const { status } = await spine.get<{ status: string }>(`/incidents/${call.incidentId}`)
    return ['resolved', 'escalated'].includes(status)
  })
  return call
}

const graded = async (site: Site) => (await recorded(site)).incidentId
const gradedCall = async (site: Site) => (await recorded(site)).callId

const waiting = async ({ spine }: Site) => (await spine.pendingApproval()).id

async function withFollowUp({ spine }: Site): Promise<string> {
  const { incidentId } = await spine.until('a follow-up', async () => {
    const { first } = await spine.get<{ first: { incidentId: string }[] }>('/follow-ups')
    return first[0]
  })
  return incidentId
}

async function stoppedVm({ spine }: Site): Promise<string> {
  const { stateFingerprint } = await spine.get<{ stateFingerprint: string }>('/vms/vm-104/stop?dry_run=true')
  const headers = { 'if-match': stateFingerprint }
  const { body } = await spine.post('/vms/vm-104/stop', { reason: 'maintenance' }, { headers })
  return String(body.incidentId)
}

/** The policy of that page is put into its place, and the API reads it as it starts. */
async function readsPolicy(site: Site): Promise<void> {
  writePolicy(site, policyPage)
  await site.spine.kill('api')
  await site.spine.start('api')
  await waitingDigest(site)
}

async function waitingDigest({ spine }: Site): Promise<string> {
  const { digest } = await spine.until('the policy to wait', async () => {
    const { waiting: policy } = await spine.get<{ waiting: { digest: string } | null }>('/policy')
    return policy
  })
  return digest
}

async function newestToken({ spine }: Site): Promise<string> {
  const { items } = await spine.get<{ items: { id: string; name: string }[] }>('/tokens')
  return items.find(({ name }) => name === 'anna, laptop')?.id ?? ''
}

export const walks: Walk[] = [
  {
    page: 'docs/start/demonstration.md',
    before: { 'nightshift approvals list': breaks('host_lost', 'host-osl-2') },
    fill: { ID: waiting },
  },
  {
    page: 'docs/how-to/nights.md',
    before: {
      'nightshift destinations set lamp': prepare([
        'nightshift destinations set lamp --kind webhook --secret url=- < address.txt',
        'nightshift destinations set lead-mail --kind email --option host=smtp.example.com --option from=a@example.com --option to=b@example.com',
        'nightshift operators set anna --role approver --max-risk high',
      ]),
    },
    fill: { 'inc_…': withFollowUp },
  },
  {
    page: 'docs/how-to/tell-people.md',
    before: {
      'nightshift destinations set on-call': prepare([
        'nightshift destinations set on-call --kind webhook --secret url=- < address.txt',
      ]),
      'nightshift config set approval.on_call': prepare(
        ['anna', 'ben', 'dora', 'cleo'].map((name) => `nightshift operators set ${name} --role approver`),
      ),
    },
    fill: {
      '--kind email …': () =>
        '--kind email --option host=smtp.example.com --option from=a@example.com --option to=b@example.com',
    },
  },
  { page: 'docs/how-to/page-gate.md' },
  { page: 'docs/how-to/team.md' },
  { page: 'docs/reference/access.md', fill: { 'tok_…': newestToken } },
  { page: runbooks },
  { page: 'docs/how-to/undo.md', fill: { 'inc_01k…': stoppedVm } },
  {
    page: firstWeek,
    before: {
      'nightshift home': breaks('replication_lag', 'db-osl-1'),
      'nightshift approvals deny': breaks('replication_lag', 'db-ams-1'),
    },
    fill: { 'inc_…': graded, c4_0: gradedCall, 'apr_…': waiting },
  },
  { page: 'docs/how-to/trust.md', fill: { 'inc_01k…': graded, c4_0: gradedCall } },
  {
    page: policyPage,
    before: { 'nightshift policy lint FILE': readsPolicy },
    fill: {
      'FILE [--site]': () => 'policy.yaml --site',
      FILE: () => 'policy.yaml',
      'TOOL --on KIND:ID': () => 'service_start --on host:web-1',
      DATE: () => '2026-01-01',
      DIGEST: waitingDigest,
    },
  },
  { page: 'docs/start/databases.md' },
  { page: 'docs/start/own.md' },
  { page: 'docs/how-to/write-alerts.md' },
  { page: 'docs/how-to/connect-sources.md' },
  { page: 'docs/reference/cli.md' },
  { page: 'docs/how-to/erase-a-person.md' },
]
