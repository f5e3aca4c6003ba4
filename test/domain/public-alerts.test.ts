import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { chooseResource, type KnownResource, namesToLookUp } from '../../domain/alert-resource.ts'
import { findExporterHosts, runsExportersAttribute } from '../../domain/exporter-hosts.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { keysOfGroups, resourceKey, toMatchedNames } from '../../domain/registry.ts'
import { machineOfInstance } from '../../domain/source.ts'

/**
 * Alerts of public collections with the labels that their exporters set, and what a careful person
 * would call the subject beside an inventory. `tuning` may be read and worked on. `held` is read by
 * this file alone, which tells its totals: a rule that is made from what it fails would measure
 * nothing.
 */
type Case = {
  /**
   * Repository and path, or page, that says which labels there are. Names are facts; values are
   * made up.
   */
  source: string
  alertname: string
  labels: Record<string, string>
  inventory: string
  /** Null: nothing known is named, and any answer would be a wrong one. */
  expected: string | null
  why: string
}

type ListedInventory = {
  resources: {
    kind: InventoryKind
    id: string
    aliases?: string[]
    /** What it runs on or belongs to. */
    on?: string
    attributes?: Record<string, boolean>
  }[]
  same_as: [string, string][]
  /** Job and instance of what a Prometheus scrapes there. */
  targets: [string, string][]
}

const read = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`public-alerts/${name}.json`, import.meta.url), 'utf8')) as T

const inventories = new Map(
  Object.entries(read<Record<string, ListedInventory>>('inventories')).map(([name, listed]) => [name, toKnown(listed)]),
)

function toKnown({ resources, same_as, targets }: ListedInventory): KnownResource[] {
  const canonical = keysOfGroups(same_as.map(([left, right]) => ({ left, right })))
  const canonicalOf = (key: string): string => canonical.get(key) ?? key
  const byKey = new Map(resources.map((each) => [resourceKey(each), each]))
  const namesOf = (key: string): string[] => {
    const { id, aliases } = byKey.get(key) ?? { id: key }
    return toMatchedNames({ id, name: id, aliases })
  }
  const machineOf = (instance: string) =>
    resources.find(
      ({ kind, id }) =>
        kind !== 'device' && id !== '' && namesOf(`${kind}:${id}`).includes(machineOfInstance(instance) ?? ''),
    )
  const scraped = targets.flatMap(([job, instance]) => {
    const machine = machineOf(instance)
    return machine ? [{ job, machine: canonicalOf(resourceKey(machine)) }] : []
  })
  const saying = resources.filter(({ attributes }) => attributes?.[runsExportersAttribute]).map(resourceKey)
  const exporters = new Set([...saying, ...findExporterHosts(scraped)])
  const aboveOf = (key: string): KnownResource['above'] => {
    const on = byKey.get(key)?.on
    const parent = on === undefined ? undefined : byKey.get(on)
    if (on === undefined || !parent) return []
    return [{ kind: parent.kind, id: parent.id, names: namesOf(on) }, ...aboveOf(on)]
  }
  return [...byKey].map(([key, { kind, id }]) => {
    return {
      kind,
      id,
      names: namesOf(key),
      canonical: canonicalOf(key),
      runsExporters: exporters.has(canonicalOf(key)),
      above: aboveOf(key),
    }
  })
}

type Totals = { right: number; none: number; wrong: number; rightlyNone: number; wrongOfUnknown: number }

function measure(cases: readonly Case[]): { totals: Totals; missed: string[] } {
  const totals: Totals = { right: 0, none: 0, wrong: 0, rightlyNone: 0, wrongOfUnknown: 0 }
  const missed: string[] = []
  for (const { alertname, labels, inventory, expected } of cases) {
    const all = inventories.get(inventory) ?? []
    const found = find({ alertname, ...labels }, all)
    const meant = all.find((each) => resourceKey(each) === expected)
    if (expected !== null && !meant) throw new Error(`${expected} is not in ${inventory}`)
    const isRight = found === (meant?.canonical ?? null)
    if (meant) totals[isRight ? 'right' : found === null ? 'none' : 'wrong'] += 1
    else totals[isRight ? 'rightlyNone' : 'wrongOfUnknown'] += 1
    if (!isRight) missed.push(`${alertname} ${JSON.stringify(labels)}: ${found}, not ${expected}`)
  }
  return { totals, missed }
}

/** The canonical key of what was found: two names of one thing are one answer. */
function find(labels: Record<string, string>, all: readonly KnownResource[]): string | null {
  const names = new Set(namesToLookUp(labels, []))
  const known = all.filter((each) => each.names.some((name) => names.has(name)))
  const { resource } = chooseResource(labels, [], known)
  return resource && (all.find((each) => resourceKey(each) === resourceKey(resource))?.canonical ?? 'unlisted')
}

/**
 * Lamps with a floor: what was measured last. A figure that rises is written here, with the commit
 * that raised it.
 */
const bounds = { tuning: { right: 112, wrong: 0 }, held: { right: 117, wrong: 0 } }

test.each(['tuning', 'held'] as const)('as many alerts as before find their resource (%s)', (half) => {
  const { totals, missed } = measure(read<Case[]>(half))
  if (process.env.NAMES === '1')
    console.log([half, JSON.stringify(totals), ...(half === 'tuning' ? missed : [])].join('\n'))
  expect(totals.right).toBeGreaterThanOrEqual(bounds[half].right)
  expect(totals.wrong + totals.wrongOfUnknown).toBeLessThanOrEqual(bounds[half].wrong)
})
