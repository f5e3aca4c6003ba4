import { sql } from 'kysely'
import type { UnmappedLabel } from '../../domain/alert.ts'
import { namesOf, toMachineNames } from '../../domain/alert-machines.ts'
import { type KnownResource, labelsLeft } from '../../domain/alert-resource.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { resourceKey } from '../../domain/registry.ts'
import { formatResourceRules, parseResourceRules, type ResourceRule } from '../../domain/resource-rules.ts'
import { findByNames } from '../inventory/registry.ts'
import { findAlertResources } from '../inventory/resources.ts'
import type { Scope } from '../scope.ts'
import { readSettings } from '../settings.ts'
import { isUnmatched } from './alerts.ts'

/**
 * Finds labels that name known resources, in alerts without a resource, so that a rule can map the
 * labels.
 */

/** Limits of what is read: the newest alerts without a resource, and the days they are from. */
const [maxAlerts, maxDays] = [2_000, 30]
const maxExamples = 3
/**
 * Kinds of resources that a name identifies without a place. All other kinds are left out, because
 * many units or workloads share a name.
 */
const mappedKinds: readonly InventoryKind[] = [
  'node',
  'host',
  'vm',
  'device',
  'cluster',
  'namespace',
  'shard',
  'tenant',
]

type LabelUse = { alerts: number; values: Set<string>; named: Map<string, KnownResource> }

/**
 * Lists the labels with the most alerts first. Leaves out a label whose values are mostly not names
 * of resources.
 */
export async function listUnmappedLabels({ db }: Scope): Promise<UnmappedLabel[]> {
  const rules = (await readSettings(db)).value<ResourceRule[]>('alert.resource_labels')
  const rows = await db
    .selectFrom('alert')
    .select('labels')
    .where(isUnmatched)
    .where('firstSeenAt', '>', sql<string>`nightshift_now() - make_interval(days => ${maxDays})`)
    .orderBy('id', 'desc')
    .limit(maxAlerts)
    .execute()
  const alerts = rows.map(({ labels }) => labels as Record<string, string>)
  // Leaves out an alert whose resource would now be found, because of a new rule or import.
  const found = await findAlertResources(db, alerts, rules)
  const left = alerts.filter((_, at) => found[at]?.resource === null)
  const uses = await readUses(db, left, rules)
  return [...uses].flatMap(([label, use]) => toUnmapped(label, use, rules)).sort(byAlerts)
}

async function readUses(
  db: Scope['db'],
  alerts: readonly Record<string, string>[],
  rules: readonly ResourceRule[],
): Promise<Map<string, LabelUse>> {
  const pairs = alerts.flatMap((labels) =>
    labelsLeft(labels, rules).map((label) => ({ label, value: labels[label] ?? '' })),
  )
  const known = await findByNames(db, [...new Set(pairs.flatMap(({ value }) => namesIn(value)))])
  const uses = new Map<string, LabelUse>()
  for (const { label, value } of pairs) {
    const use = uses.get(label) ?? { alerts: 0, values: new Set(), named: new Map() }
    uses.set(label, use)
    use.values.add(value)
    const thing = findNamed(value, known)
    if (thing === null) continue
    use.alerts += 1
    use.named.set(value, thing)
  }
  return uses
}

const namesIn = (value: string): string[] => [...namesOf(value), ...toMachineNames(value)]

/** Finds the one resource that a value names; null if it names none or several. */
function findNamed(value: string, known: readonly KnownResource[]): KnownResource | null {
  const names = namesIn(value)
  const meant = known.filter(
    ({ kind, names: own }) => mappedKinds.includes(kind) && own.some((one) => names.includes(one)),
  )
  const [only] = meant
  return only && new Set(meant.map(({ canonical }) => canonical)).size === 1 ? only : null
}

function toUnmapped(
  label: string,
  { alerts, values, named }: LabelUse,
  rules: readonly ResourceRule[],
): UnmappedLabel[] {
  const counts = Map.groupBy(named.values(), ({ kind }) => kind)
  const [kind] = [...counts.entries()].sort(([, a], [, b]) => b.length - a.length)[0] ?? []
  if (kind === undefined || named.size * 2 < values.size) return []
  const parsed = parseResourceRules(`${label} -> ${kind}:*`)
  if (!parsed.ok) return []
  const rule = formatResourceRules(parsed.rules)
  const all = formatResourceRules([...rules, ...parsed.rules])
  const examples = [...named].slice(0, maxExamples).map(([value, thing]) => ({ value, resource: resourceKey(thing) }))
  const things = new Set([...named.values()].map(({ canonical }) => canonical)).size
  const command = `nightshift config set alert.resource_labels '${all.replaceAll("'", `'\\''`)}'`
  return [{ label, kind, alerts, things, examples, rule, command }]
}

const byAlerts = (a: UnmappedLabel, b: UnmappedLabel): number => b.alerts - a.alerts || (a.label < b.label ? -1 : 1)
