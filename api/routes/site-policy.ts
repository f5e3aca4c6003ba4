import { z } from '@hono/zod-openapi'
import { databaseTime } from '../../db/clock.ts'
import { acceptSitePolicy, readSitePolicies, textInForce } from '../../db/site-policies.ts'
import { explainUnder } from '../../db/site-policy.ts'
import {
  type SiteExplanation,
  siteCallToExplain,
  siteExplanation,
  sitePolicyState,
} from '../../domain/site-policy-state.ts'
import { readSitePolicy } from '../../safety/site/read.ts'
import { toolFacts } from '../../tools/registry.ts'
import { type ApiDeps, requirePerson } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'

const tag = 'safety'
const digest = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
const standing = {
  digest,
  place: 'policy.yaml',
  commit: '1f0c9a7d6e5b4c3a2f1e0d9c8b7a695847362514',
  readAt: '2026-11-29T03:00:00.000000Z',
  inForceAt: '2026-11-29T03:00:00.000000Z',
  acceptedBy: 'admin',
  widens: ['"start" (line 4) says run where the kernel alone decided'],
}
const decision = { action: 'never' as const, rule: 'christmas', line: 4, commit: standing.commit }

const showEndpoint = endpoint({
  method: 'get',
  path: '/policy',
  permission: 'read',
  tag,
  summary: "The site's policy: what is in force, what waits for an admin, and why the newest file was not taken",
  answer: sitePolicyState,
  example: { inForce: standing, waiting: null, reading: { readAt: standing.readAt, digest, faults: [] } },
  run: async ({ scope }) => await readSitePolicies(scope.db),
})

const acceptEndpoint = endpoint({
  method: 'post',
  path: '/policy/accept',
  permission: 'write_config',
  tag,
  summary: "Lets the site's policy hold that waits, by its digest",
  body: z.strictObject({ digest: z.string().regex(/^[0-9a-f]{12,64}$/, 'takes 12 to 64 figures of the digest') }),
  bodyExample: { digest },
  answer: sitePolicyState,
  example: { inForce: standing, waiting: null, reading: null },
  status: 200,
  problems: [404],
  async run({ body, principal, actor, scope }, { db }) {
    const person = requirePerson(principal, actor)
    const { waiting } = await readSitePolicies(db)
    const isMeant = waiting?.digest.startsWith(body.digest) ?? false
    if (!waiting || !isMeant || !(await acceptSitePolicy(db, waiting.digest, person)))
      throw new Problem(404, 'NOT_FOUND', `No policy ${body.digest} waits: "nightshift policy show" says what does.`)
    return await readSitePolicies(scope.db)
  },
})

const explainEndpoint = endpoint({
  method: 'post',
  path: '/policy/explain',
  permission: 'read',
  tag,
  summary: 'What the policy in force, or another text, says about calls',
  description: 'Nothing is run, written or asked. Names and labels are those that the registry has now.',
  body: z.strictObject({
    calls: z.array(siteCallToExplain).min(1).max(200),
    text: z.string().max(1_048_576).optional(),
  }),
  bodyExample: { calls: [{ tool: 'vm_start', targets: [{ kind: 'vm', id: 'vm-101' }], type: 'vm_stopped' }] },
  answer: z.object({ items: z.array(siteExplanation) }),
  example: {
    items: [{ write: decision, look: null, rules: [{ rule: 'christmas', line: 4, action: 'never', whyNot: null }] }],
  },
  status: 200,
  async run({ body }, deps) {
    return { items: await explainCalls(deps, body) }
  },
})

async function explainCalls(
  { db }: ApiDeps,
  { calls, text }: { calls: z.infer<typeof siteCallToExplain>[]; text?: string | undefined },
): Promise<SiteExplanation[]> {
  const given = text ?? (await textInForce(db))
  if (given === null) return calls.map(() => ({ write: null, look: null, rules: [] }))
  const { inForce } = await readSitePolicies(db)
  const read = readSitePolicy(given, toolFacts, text === undefined ? (inForce?.commit ?? null) : null)
  if (!read.ok) {
    const [fault] = read.faults
    throw new Problem(400, 'INVALID_INPUT', `Line ${fault?.line}: ${fault?.why}: ${fault?.remedy}.`)
  }
  const nowMs = Date.parse(await databaseTime(db))
  const found: SiteExplanation[] = []
  for (const { at, ...call } of calls)
    found.push(await explainUnder(db, read.compiled, call, at === undefined ? nowMs : Date.parse(at)))
  return found
}

export const sitePolicyRoutes = [showEndpoint, acceptEndpoint, explainEndpoint]
