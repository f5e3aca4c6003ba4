import { z } from '@hono/zod-openapi'
import { listOperators, type OperatorRow } from '../../db/access/operators.ts'
import { databaseTime } from '../../db/clock.ts'
import type { Scope } from '../../db/scope.ts'
import { silenceReadings } from '../../db/silences.ts'
import { acceptSitePolicy, newestText, readSitePolicies, textInForce } from '../../db/site-policies.ts'
import { everyThing, explainUnder } from '../../db/site-policy.ts'
import { typesSeen } from '../../db/trust/stops.ts'
import { permissions } from '../../domain/permissions.ts'
import {
  type SiteExplanation,
  type SiteLint,
  siteCallToExplain,
  siteExplanation,
  siteLint,
  sitePolicyState,
} from '../../domain/site-policy-state.ts'
import { type FactsOfSite, lintAgainstSite } from '../../safety/site/lint.ts'
import { readSitePolicy } from '../../safety/site/read.ts'
import { toolFacts } from '../../tools/registry.ts'
import { type ApiDeps, requirePerson } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'
import { typesOfRunbooks } from '../known-types.ts'
import { requireIncident } from './incidents.ts'

const tag = 'safety'
const digest = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
const standing = {
  digest,
  place: 'policy.yaml',
  commit: '1f0c9a7d6e5b4c3a2f1e0d9c8b7a695847362514',
  readAt: '2026-11-29T03:00:00.000000Z',
  inForceAt: '2026-11-29T03:00:00.000000Z',
  acceptedBy: 'admin',
  widens: ['"start" (line 4) now says run; before, only the built-in rules decided'],
}
const decision = { action: 'never' as const, rule: 'christmas', line: 4, commit: standing.commit }

const showEndpoint = endpoint({
  method: 'get',
  path: '/policy',
  permission: 'read',
  tag,
  summary: "The site's policy in force, the policy that waits for an admin, and why the newest file was refused",
  answer: sitePolicyState,
  example: {
    inForce: standing,
    waiting: null,
    reading: { readAt: standing.readAt, digest, faults: [] },
    silences: null,
  },
  run: async ({ scope }) => await readSitePolicies(scope.db),
})

const acceptEndpoint = endpoint({
  method: 'post',
  path: '/policy/accept',
  permission: 'write_config',
  tag,
  summary: 'Puts the waiting policy of the site in force, by its digest',
  body: z.strictObject({ digest: z.string().regex(/^[0-9a-f]{12,64}$/, 'must be 12 to 64 digits of the digest') }),
  bodyExample: { digest },
  answer: sitePolicyState,
  example: { inForce: standing, waiting: null, reading: null, silences: null },
  status: 200,
  problems: [404],
  async run({ body, principal, actor, scope }, { db }) {
    const person = requirePerson(principal, actor)
    const { waiting } = await readSitePolicies(db)
    const isMeant = waiting?.digest.startsWith(body.digest) ?? false
    if (!waiting || !isMeant || !(await acceptSitePolicy(db, waiting.digest, person)))
      throw new Problem(
        404,
        'NOT_FOUND',
        `No policy ${body.digest} waits: "nightshift policy show" shows the waiting policy.`,
      )
    return await readSitePolicies(scope.db)
  },
})

const explainEndpoint = endpoint({
  method: 'post',
  path: '/policy/explain',
  permission: 'read',
  tag,
  summary: 'How the policy in force, or another text, judges calls',
  description:
    'Nothing is run, written or requested. Names and labels come from the current registry and silences from the last read, also with `at`. Rules with `silenced` only match a call of an incident.',
  body: z.strictObject({
    calls: z.array(siteCallToExplain).min(1).max(200),
    text: z.string().max(1_048_576).optional(),
  }),
  bodyExample: { calls: [{ tool: 'vm_start', targets: [{ kind: 'vm', id: 'vm-101' }], type: 'vm_stopped' }] },
  answer: z.object({ items: z.array(siteExplanation) }),
  example: {
    items: [
      {
        ...{ write: decision, look: null, silence: null, noSilence: null },
        rules: [{ rule: 'christmas', line: 4, action: 'never', whyNot: null }],
      },
    ],
  },
  status: 200,
  problems: [404],
  async run({ scope, body }, deps) {
    for (const id of new Set(body.calls.flatMap(({ incidentId }) => incidentId ?? []))) await requireIncident(scope, id)
    return { items: await explainCalls(deps, body) }
  },
})

async function explainCalls(
  { db }: ApiDeps,
  { calls, text }: { calls: z.infer<typeof siteCallToExplain>[]; text?: string | undefined },
): Promise<SiteExplanation[]> {
  const given = text ?? (await textInForce(db))
  if (given === null) return calls.map(() => ({ write: null, look: null, rules: [], silence: null, noSilence: null }))
  const { inForce } = await readSitePolicies(db)
  const read = readSitePolicy(given, toolFacts, text === undefined ? (inForce?.commit ?? null) : null)
  if (!read.ok) {
    const [fault] = read.faults
    throw new Problem(400, 'INVALID_INPUT', `Line ${fault?.line}: ${fault?.why}: ${fault?.remedy}.`)
  }
  const nowMs = Date.parse(await databaseTime(db))
  const found: SiteExplanation[] = []
  for (const { at, incidentId = null, ...call } of calls)
    found.push(
      await explainUnder(
        db,
        read.compiled,
        { ...call, incidentId, atMs: at === undefined ? nowMs : Date.parse(at) },
        nowMs,
      ),
    )
  return found
}

const lintEndpoint = endpoint({
  method: 'post',
  path: '/policy/lint',
  permission: 'read',
  tag,
  summary: 'Compares a policy with the site: unknown names, rules that never decide, groups that cannot decide',
  description:
    'Checks `text`; without it the waiting policy, or else the policy in force. `faults` refuse the file. `notes` refuse nothing, because a missing resource may be listed later. Nothing is run, written or requested.',
  body: z.strictObject({ text: z.string().max(2_097_152).optional() }),
  bodyExample: {},
  answer: siteLint,
  example: {
    ...{ of: 'in_force' as const, digest, faults: [] },
    notes: [{ line: 4, why: '"christmas": no source lists host:web-9', remedy: 'write host:web-8' }],
  },
  status: 200,
  problems: [404],
  run: async ({ scope, body: { text } }, deps) => await lintOnSite(scope, deps, text),
})

async function lintOnSite(scope: Scope, deps: ApiDeps, given: string | undefined): Promise<SiteLint> {
  const found = given === undefined ? await newestText(deps.db) : { text: given, status: 'text' as const }
  if (!found) throw new Problem(404, 'NOT_FOUND', 'No policy is in force, and none waits: give a file.')
  const read = readSitePolicy(found.text, toolFacts, null)
  if (!read.ok) return { of: found.status, digest: null, faults: read.faults, notes: [] }
  const notes = lintAgainstSite(read.policy, read.compiled, read.lines, await readFactsOfSite(scope, deps))
  return { of: found.status, digest: read.compiled.digest, faults: [], notes }
}

const maxPeople = 10_000

async function readFactsOfSite(scope: Scope, { db, knowledge }: ApiDeps): Promise<FactsOfSite> {
  const [things, operators, { types }, at, silences] = await Promise.all([
    everyThing(db),
    listOperators(scope, { after: null, limit: maxPeople }),
    typesSeen(db, []),
    databaseTime(db),
    silenceReadings(db),
  ])
  return {
    ...{ things, silences },
    people: new Map(operators.map((person) => [person.name, standingOfPerson(person)])),
    types: new Set([...types, ...typesOfRunbooks(knowledge)]),
    nowMs: Date.parse(at),
  }
}

function standingOfPerson({ role, maxRisk, rights, disabledAt }: OperatorRow) {
  if (disabledAt !== null) return 'disabled'
  const mayDecide = permissions[role].includes('decide') && (maxRisk !== 'none' || rights.length > 0)
  return mayDecide ? 'decides' : 'decides nothing'
}

export const sitePolicyRoutes = [showEndpoint, acceptEndpoint, explainEndpoint, lintEndpoint]
