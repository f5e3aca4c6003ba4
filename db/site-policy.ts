import { sql } from 'kysely'
import { sha256 } from '../domain/digest.ts'
import { type ResourceRef, resourceKey } from '../domain/registry.ts'
import type { SiteDecisions } from '../domain/site-decision.ts'
import type { SiteExplanation } from '../domain/site-policy-state.ts'
import { type CompiledPolicy, type CompiledRule, compilePolicy } from '../safety/site/compile.ts'
import { decideBySite, type SiteThing, whyNot } from '../safety/site/decide.ts'
import { parseSitePolicy } from '../safety/site/read.ts'
import { describeNoSilence, findSilence } from '../safety/site/silences.ts'
import type { Db, Trx } from './connect.ts'
import { labelsOfAlerts, silencesRead } from './silences.ts'

/**
 * Reads the decisions of the configured policy about a call, in the transaction that writes the
 * policy decision.
 */

/**
 * The call to decide about. `incidentId`: the incident whose alerts may be silenced; null for a
 * call without an incident.
 */
type PolicyCall = { tool: string; type: string; targets: readonly ResourceRef[]; incidentId: string | null }

/**
 * Returns the decisions of the configured policy about a call. Undefined if no policy is in force.
 * A policy that this version cannot read refuses every write.
 */
export async function readSiteDecisions(db: Db | Trx, call: PolicyCall): Promise<SiteDecisions | undefined> {
  const row = await db
    .selectFrom('sitePolicy')
    .select(['id', 'digest', 'gitCommit'])
    .select(({ fn }) => fn<string>('nightshift_now').as('at'))
    .where('status', '=', 'in_force')
    .executeTakeFirst()
  if (!row) return undefined
  const policy = await compiledPolicy(db, row)
  if (policy === null) return unreadable(row)
  return await decideWith(db, policy, call, Date.parse(row.at))
}

/** Returns the decisions about a call under a given policy at a given time. */
async function decideWith(
  db: Db | Trx,
  policy: CompiledPolicy,
  { tool, type, targets, incidentId }: PolicyCall,
  nowMs: number,
): Promise<SiteDecisions> {
  const rules = policy.ofTool(tool)
  const hasResource = rules.some(({ kinds, ids }) => kinds !== null || ids !== null)
  const hasLabels = rules.some(({ labels }) => labels.length > 0)
  const things = await readThings(db, targets, { names: hasResource || hasLabels, labels: hasLabels })
  const { silence } = await lookForSilence(db, rules, incidentId, nowMs)
  return decideBySite(policy, { tool, type, things, nowMs, silence })
}

/** Finds whether an alert of the incident is silenced. Reads nothing if no rule uses silences. */
async function lookForSilence(
  db: Db | Trx,
  rules: readonly CompiledRule[],
  incidentId: string | null,
  nowMs: number,
): Promise<Pick<SiteExplanation, 'silence' | 'noSilence'>> {
  if (!rules.some(({ silenced }) => silenced)) return { silence: null, noSilence: null }
  const alerts = incidentId === null ? null : await labelsOfAlerts(db, incidentId)
  const read = alerts === null || alerts.length === 0 ? [] : await silencesRead(db)
  const silence = alerts && findSilence(read, alerts, nowMs)
  return { silence, noSilence: silence ? null : describeNoSilence(read, alerts) }
}

/**
 * Returns the decisions about a call under a given policy, and explains for each rule of the tool
 * why it does not apply. `atMs`: the time of the call. Only current silences are known.
 */
export async function explainUnder(
  db: Db | Trx,
  policy: CompiledPolicy,
  call: PolicyCall & { atMs: number },
  nowMs: number,
): Promise<SiteExplanation> {
  const things = await readThings(db, call.targets, { names: true, labels: true })
  const ofTool = policy.ofTool(call.tool)
  const told = await lookForSilence(db, ofTool, call.incidentId, nowMs)
  const asked = { tool: call.tool, type: call.type, things, nowMs: call.atMs, silence: told.silence }
  const rules = ofTool.map((rule) => ({
    ...{ rule: rule.name, line: rule.line, action: rule.action },
    whyNot: whyNotAny(rule, asked, things),
  }))
  return { ...decideBySite(policy, asked), ...told, rules }
}

/** Returns why a rule does not apply to the first resource; null if it applies to any resource. */
function whyNotAny(rule: CompiledRule, asked: Parameters<typeof whyNot>[1], things: readonly SiteThing[]) {
  const reasons = (things.length > 0 ? things : [null]).map((thing) => whyNot(rule, asked, thing))
  return reasons.includes(null) ? null : (reasons[0] ?? null)
}

/** Compiled policies of this process. They stay valid: the policy in a row never changes. */
const compiled = new Map<string, CompiledPolicy | null>()
const maxCompiled = 20

type StoredPolicy = { id: string; digest: string; gitCommit: string | null }

/**
 * Compiles a stored policy. Null if this version cannot read the policy, or if its text differs
 * from the accepted text.
 */
export async function compiledPolicy(
  db: Db | Trx,
  { id, digest, gitCommit }: StoredPolicy,
): Promise<CompiledPolicy | null> {
  const key = `${id} ${digest} ${gitCommit}`
  const known = compiled.get(key)
  if (known !== undefined) return known
  const { text } = await db.selectFrom('sitePolicy').select('text').where('id', '=', id).executeTakeFirstOrThrow()
  const policy = compileStored(text, digest, gitCommit)
  if (compiled.size >= maxCompiled) compiled.clear()
  compiled.set(key, policy)
  return policy
}

function compileStored(text: string, digest: string, commit: string | null): CompiledPolicy | null {
  if (sha256(text) !== digest) return null
  const parsed = parseSitePolicy(text)
  if (!parsed.ok) return null
  try {
    return compilePolicy(parsed.policy, { digest, commit, lineOf: (at) => parsed.lines(['rules', at]) })
  } catch {
    return null
  }
}

function unreadable({ digest, gitCommit }: StoredPolicy): SiteDecisions {
  const rule = 'what this build cannot read'
  return { write: { action: 'never', rule, line: 1, digest, commit: gitCommit }, look: null }
}

/**
 * Reads resources with all their names, and facts from sources with authority, in one query. Reads
 * only facts that a rule of the policy uses.
 */
async function readThings(
  db: Db | Trx,
  targets: readonly ResourceRef[],
  wanted: { names: boolean; labels: boolean },
): Promise<SiteThing[]> {
  const plain = targets.map((target) => ({ names: [target], labels: {} }))
  if (targets.length === 0 || !wanted.names) return plain
  const { rows } = await sql<{ own: string; kind: ResourceRef['kind']; id: string; labels: [string, string][] | null }>`
    with wanted as (
      select kind, id from jsonb_to_recordset(${JSON.stringify(targets.map(({ kind, id }) => ({ kind, id })))}::jsonb)
        as named (kind text, id text))
    select own.kind || ':' || own.id as own, other.kind, other.id, ${wanted.labels ? labelsOfOne : sql`null::jsonb`} as labels
    from wanted join resource own using (kind, id) join resource other on other.canonical = own.canonical
    order by other.kind, other.id`.execute(db)
  const byOwn = Map.groupBy(rows, ({ own }) => own)
  return plain.map(({ names: [target] }) => {
    const known = byOwn.get(resourceKey(target as ResourceRef)) ?? []
    const others = known.map(({ kind, id }) => ({ kind, id }))
    const isOther = (name: ResourceRef) => resourceKey(name) !== resourceKey(target as ResourceRef)
    return {
      names: [target as ResourceRef, ...others.filter(isOther)],
      labels: groupValues(known.flatMap(({ labels }) => labels ?? [])),
    }
  })
}

const labelsOfOne = sql`(
  select jsonb_agg(jsonb_build_array(said.key, said.value)) from (
    select attribute.key, attribute.value
      from resource_source join registry_source using (source), jsonb_each_text(resource_source.attributes) as attribute
      where resource_source.kind = other.kind and resource_source.id = other.id and has_authority and attribute.value is not null
    union all select 'team', other.team where other.team is not null) as said)`

function groupValues(pairs: readonly [string, string][]): Record<string, string[]> {
  // Uses an object without a prototype, because a label may be called `__proto__`.
  const grouped: Record<string, string[]> = Object.create(null)
  for (const [key, value] of pairs) grouped[key] = [...(grouped[key] ?? []), value]
  return grouped
}

/** Maximum number of names in the registry that `policy lint` reads. */
const maxThings = 20_000

/**
 * Reads all resources of the registry, each once with all its names. Null if the registry has too
 * many.
 */
export async function everyThing(db: Db): Promise<SiteThing[] | null> {
  const rows = await db
    .selectFrom('resource')
    .select(['kind', 'id', 'canonical'])
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('resourceSource')
          .select('source')
          .whereRef('resourceSource.kind', '=', 'resource.kind')
          .whereRef('resourceSource.id', '=', 'resource.id'),
      ),
    )
    .orderBy('canonical')
    .limit(maxThings + 1)
    .execute()
  if (rows.length > maxThings) return null
  const byCanonical = Map.groupBy(rows, ({ canonical }) => canonical)
  const labels = await labelsOf(db, rows as ResourceRef[])
  return [...byCanonical.values()].map((names) => ({
    names: names.map(({ kind, id }) => ({ kind, id }) as ResourceRef),
    labels: groupValues(names.flatMap((name) => labels.get(resourceKey(name as ResourceRef)) ?? [])),
  }))
}

/** Reads the attributes and the team of each resource as texts, by the key of the resource. */
async function labelsOf(db: Db | Trx, refs: readonly ResourceRef[]): Promise<Map<string, [string, string][]>> {
  const { rows } = await sql<{ key: string; name: string; value: string }>`
    with wanted as (
      select kind, id from jsonb_to_recordset(${JSON.stringify(refs.map(({ kind, id }) => ({ kind, id })))}::jsonb)
        as named (kind text, id text))
    select kind || ':' || id as key, attribute.key as name, attribute.value
      from resource_source join registry_source using (source) join wanted using (kind, id),
        jsonb_each_text(resource_source.attributes) as attribute
      where has_authority and attribute.value is not null
    union all
    select kind || ':' || id, 'team', team from resource join wanted using (kind, id) where team is not null`.execute(
    db,
  )
  const byKey = new Map<string, [string, string][]>()
  for (const { key, name, value } of rows) byKey.set(key, [...(byKey.get(key) ?? []), [name, value]])
  return byKey
}
