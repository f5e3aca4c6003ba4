import { toMachineNames } from './alert-resource.ts'
import { sha256 } from './digest.ts'
import type { Attributes, Declared, RegistrySource } from './registry.ts'
import type { ResourceRef } from './resource.ts'

/** What a source of metrics scrapes, as it lists it: the labels that every series of a target has. */
export type ListedTarget = { labels: Readonly<Record<string, string>> }

/** As many targets of one source as the registry takes; a longer list is refused, and the one before it stays. */
export const mostTargets = 100_000

const mostAttributes = 8
const mostIdCharacters = 128

/** What a source lists has no authority: it may add a lease or a denial, and widens nothing. */
export const targetsSource = ({ kind, name }: { kind: string; name: string }): RegistrySource => ({
  name: `${kind}:${name}`,
  hasAuthority: false,
})

/** The full name of the machine in an `instance`, or null where it names none, or the server itself. */
export const machineOfInstance = (instance: string): string | null => toMachineNames(instance)[0] ?? null

/**
 * Targets as resources, one for each `instance`, whatever the jobs that scrape it. One that is on a machine of the registry is a name of that machine. What
 * changes from scrape to scrape is left out: a list that did not change is not written.
 */
export function targetsToDeclared(
  targets: readonly ListedTarget[],
  findMachine: (name: string) => ResourceRef | null,
): Declared {
  const byId = new Map<string, { instance: string; jobs: Set<string>; labels: Record<string, string> }>()
  const withName = targets.flatMap(({ labels }) => {
    const instance = withoutSecrets(labels.instance ?? '')
    const id = toTargetId(instance)
    return id === null ? [] : [{ id, instance, labels }]
  })
  for (const { id, instance, labels } of withName.sort(byIdAndLabels)) {
    const known = byId.get(id) ?? { instance, jobs: new Set<string>(), labels: { ...labels } }
    if (labels.job) known.jobs.add(labels.job)
    byId.set(id, known)
  }
  const all = [...byId]
  return {
    resources: all.map(([id, { instance, jobs, labels }]) => ({
      kind: 'target' as const,
      id,
      name: instance.slice(0, 200),
      attributes: toAttributes([...jobs], labels),
    })),
    relations: all.flatMap(([id, { instance }]) => {
      const name = machineOfInstance(instance)
      const machine = name === null ? null : findMachine(name)
      return machine === null ? [] : [{ from: { kind: 'target' as const, id }, kind: 'same_as' as const, to: machine }]
    }),
  }
}

type Named = { id: string; labels: Readonly<Record<string, string>> }

/** The same order whatever the order of the server: the digest of a list tells whether it changed. */
function byIdAndLabels(a: Named, b: Named): number {
  const [left, right] = a.id === b.id ? [sortKey(a), sortKey(b)] : [a.id, b.id]
  return left < right ? -1 : left > right ? 1 : 0
}

const sortKey = ({ labels }: Named): string => JSON.stringify(Object.entries(labels).sort(byName))

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1)

/** A probe's address may carry a user, a password or a token. */
const withoutSecrets = (instance: string): string =>
  instance
    .trim()
    .replace(/[?#].*$/s, '')
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/i, '$1')

/** The instance as an id; where it holds what an id does not (`https://…/health`), with a hash, so that two of them stay two. */
function toTargetId(instance: string): string | null {
  const plain = instance
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
    .replace(/[^A-Za-z0-9._:@-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
  if (plain === '') return null
  if (plain === instance && plain.length <= mostIdCharacters) return plain
  return `${plain.slice(0, mostIdCharacters - 9)}-${sha256(instance).slice(0, 8)}`
}

function toAttributes(jobs: readonly string[], labels: Readonly<Record<string, string>>): Attributes {
  const others = Object.entries(labels)
    .filter(([name]) => name !== 'instance' && name !== 'job')
    .sort(byName)
    .slice(0, mostAttributes)
  return Object.fromEntries(
    [['job', [...jobs].sort().join(', ')] as const, ...others].map(([name, value]) => [
      name.slice(0, 100),
      value.slice(0, 200),
    ]),
  )
}
