import { z } from '@hono/zod-openapi'
import { operatorById, typeOfIncident } from '../../db/access/operators.ts'
import { listApprovals } from '../../db/approvals/find.ts'
import { isOwnRun } from '../../db/approvals/settle.ts'
import { whoMayAt } from '../../db/approvals/who-may.ts'
import { databaseTime } from '../../db/clock.ts'
import type { Scope } from '../../db/scope.ts'
import { readSettings } from '../../db/settings.ts'
import { readSiteDecisions } from '../../db/site-policy.ts'
import { faultOfPattern } from '../../domain/decision-right.ts'
import { parseTime } from '../../domain/format.ts'
import { incidentType } from '../../domain/incident.ts'
import { parseResourceKey, type ResourceRef } from '../../domain/registry.ts'
import { nameSiteRule, type SiteDecision, whyNoMember } from '../../domain/site-decision.ts'
import { highestRisk, type Risk, requiredApprovals, risks } from '../../domain/tool.ts'
import { type WhoMay, whoMay } from '../../domain/who-may.ts'
import { toolFacts } from '../../tools/registry.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'

const query = z.object({
  /** The id of an approval. Without it, `tool` and its targets name the call. */
  approval: z.string().optional(),
  tool: z.string().optional(),
  /** Resources such as `host:db-1`, separated by commas. */
  resources: z.string().max(2_000).optional(),
  type: incidentType.optional(),
  /** The risk of the call, if it is higher than the risk of its tool. */
  risk: z.enum(risks).optional(),
  /** A time at which the rights are evaluated, instead of now. */
  at: z
    .string()
    .refine((text) => !Number.isNaN(parseTime(text)), 'must be a time such as 2026-11-21 or 2026-11-21T01:00:00Z')
    .optional(),
})

const example: WhoMay = {
  at: '2026-11-21T01:47:30.000000Z',
  risk: 'critical',
  incidentType: 'host_down',
  targets: [{ kind: 'host', id: 'host-ams-1' }],
  required: 2,
  people: [
    { name: 'anna', role: 'approver', why: null },
    { name: 'ben', role: 'approver', why: 'ben may decide risks up to high, and this one is critical' },
  ],
}

/** Routes that list who may decide a call, now or at a given time, by the rules of a decision. */
export const whoMayRoutes = endpoint({
  method: 'get',
  path: '/who-may',
  permission: 'audit',
  tag: 'approvals',
  summary: 'Who may decide about a call, and why the others may not',
  description:
    'For an `approval`, or for a `tool` with its `resources` and an incident `type`. With `at`, the rights at that time count, from the history in the database. The current policy of the site counts; for a `tool`, without its rules about silenced alerts. The response is not a guarantee: each decision is checked again when it is used.',
  query,
  answer: whoMay,
  example,
  problems: [404],
  async run({ scope, query: asked }, deps) {
    const now = await databaseTime(deps.db)
    const at = asked.at ? new Date(parseTime(asked.at)).toISOString() : now
    if (Date.parse(at) > Date.parse(now)) throw wrong('at', 'is in the future, and the rights at that time are unknown')
    const { ownRunOf, dryRun, ...subject } = await readSubject(deps, scope, asked)
    const people = await whoMayAt(scope, { ...subject, at })
    if (!people) throw new Problem(404, 'NOT_FOUND', `The users at ${at} are unknown: the history begins later.`)
    const own = ownRunOf && (await nameOf(deps, ownRunOf))
    const refused = whySiteRefuses(dryRun)
    return {
      at,
      ...subject,
      people: people.map((each) => ({
        ...each,
        why:
          refused ??
          each.why ??
          whyNoMember(each.name, dryRun) ??
          (each.name === own ? `${own} requested this run, so somebody else has to approve` : null),
      })),
    }
  },
})

type Subject = Pick<WhoMay, 'risk' | 'incidentType' | 'targets' | 'required'> & {
  ownRunOf: string | null
  /** The dry run, which contains what the configured policy requires. */
  dryRun: { details: Record<string, unknown> } | null
}

async function readSubject(deps: ApiDeps, scope: Scope, asked: z.output<typeof query>): Promise<Subject> {
  if (!asked.approval) return await supposeSubject(deps, asked)
  const [found] = await listApprovals(scope, { id: asked.approval }, { before: null, limit: 1 })
  const type = found && (await typeOfIncident(deps.db, found.incidentId))
  if (!found || !type) throw notFound(`approval ${asked.approval}`)
  const { risk, targets, required, dryRun } = found
  return { risk, targets, required, dryRun, incidentType: type, ownRunOf: await requesterOf(deps, found) }
}

/** Returns why nobody can decide a call: the configured policy refuses the call. */
function whySiteRefuses(dryRun: Subject['dryRun']): string | null {
  const site = dryRun?.details.sitePolicy as SiteDecision | undefined
  return site?.action === 'never' ? `${nameSiteRule(site)} refuses this call, so nobody can approve it` : null
}

/** Finds the person whose own write requests the approval, if somebody else has to decide it. */
async function requesterOf({ db }: ApiDeps, approval: Parameters<typeof isOwnRun>[2]): Promise<string | null> {
  const row = await db
    .selectFrom('incident')
    .select('requestedBy')
    .where('id', '=', approval.incidentId)
    .executeTakeFirst()
  return row?.requestedBy && (await isOwnRun(db, row.requestedBy, approval)) ? row.requestedBy : null
}

async function nameOf({ db }: ApiDeps, id: string): Promise<string | null> {
  return (await operatorById(db, id))?.name ?? null
}

async function supposeSubject(deps: ApiDeps, asked: z.output<typeof query>): Promise<Subject> {
  const facts = asked.tool === undefined ? undefined : toolFacts.get(asked.tool)
  if (!facts) throw wrong('tool', `names no tool: ${asked.tool ?? 'name a tool or an approval'}`)
  if (facts.effect !== 'write') throw wrong('tool', `${facts.name} changes nothing, so it needs no approval`)
  if (!asked.type) throw wrong('type', 'is missing: give the type of the incident, such as disk_pressure')
  const targets = (asked.resources ?? '')
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(toTarget)
  const settings = await readSettings(deps.db, deps.environment)
  const risk = highestRisk(facts.risk, settings.value<Risk | null>('approval.risk', facts.name), asked.risk)
  const site = await readSiteDecisions(deps.db, { tool: facts.name, type: asked.type, targets, incidentId: null })
  const people = site?.write?.demand?.people ?? 0
  const required = Math.max(requiredApprovals[risk], settings.value<number>('approval.required', facts.name), people)
  const dryRun = site?.write ? { details: { sitePolicy: site.write } } : null
  return { risk, incidentType: asked.type, targets, required, dryRun, ownRunOf: null }
}

function toTarget(text: string): ResourceRef {
  const fault = text.includes('*') ? 'matches several resources: name one resource' : faultOfPattern(text)
  const target = fault ? null : parseResourceKey(text)
  if (!target) throw wrong('resources', `"${text}" ${fault ?? 'is not a resource'}`)
  return target
}

function wrong(field: string, message: string): Problem {
  return new Problem(422, 'INVALID', `${field}: ${message}.`, { fields: { errors: [{ in: 'query', field, message }] } })
}
