import type { Word } from './parse.ts'

/**
 * Names of containers, pods, guests and buckets. Each name is known for the client and namespace in
 * which it was found: `pod:prod:web-0`. A name without client and namespace, such as `web`, is a
 * guest of the inventory, which any program may reach.
 */

/** Names that are allowed: as long as programs give, and none that looks like an option or path. */
const plainName = /^[\w][\w.-]{0,252}$/

export const isPlainName = (text: string): boolean => plainName.test(text)

export const nameKey = (kind: string, namespace: string, name: string): string => `${kind}:${namespace}:${name}`

/** Returns the entry for a known name; null if the name was not looked up. */
export function knownAs(known: ReadonlySet<string>, key: string, name: string): string | null {
  if (known.has(key)) return key
  return known.has(name) ? name : null
}

const baseName = ({ text }: Word): string => text.slice(text.lastIndexOf('/') + 1)
const clusters: ReadonlySet<string> = new Set(['kubectl', 'oc', 'k3s', 'microk8s'])
const kindsOfProgram: Readonly<Record<string, string>> = {
  'docker-compose': 'service',
  'podman-compose': 'service',
  ip: 'netns',
}

/**
 * Returns the kind of object that a command names: `docker exec web` names a container, `docker
 * compose exec web` a service.
 */
export function kindOfNames(words: readonly Word[]): string {
  const [program] = words
  const name = program ? baseName(program) : ''
  if (clusters.has(name)) return 'pod'
  return words[1]?.text === 'compose' ? 'service' : (kindsOfProgram[name] ?? name)
}

const namespaces: ReadonlySet<string> = new Set(['-n', '--namespace'])
/** Options that choose another cluster, server or project, where a name denotes another object. */
const elsewhere: ReadonlySet<string> = new Set(
  '--context --cluster --user -s --server --kubeconfig -p --project-name -f --file --project-directory'.split(' '),
)

/**
 * Returns the namespace that the options choose; empty for the default namespace of the program.
 */
export function namespaceOf(given: readonly (readonly [name: string, value: string])[]): string {
  const parts: string[] = []
  for (const [name, value] of given) {
    const is = value.replace(/^=/, '')
    if (namespaces.has(name)) parts.push(is)
    else if (elsewhere.has(name)) parts.push(`${name}=${is}`)
  }
  return parts.sort().join(' ')
}

/** Kinds of Kubernetes that run pods, by each of their names. */
const workloads: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'pod pods po',
    'deployment deployments deploy deployment.apps deployments.apps',
    'statefulset statefulsets sts statefulset.apps statefulsets.apps',
    'daemonset daemonsets ds daemonset.apps daemonsets.apps',
    'replicaset replicasets rs replicaset.apps replicasets.apps',
    'job jobs job.batch jobs.batch',
    'service services svc',
  ].flatMap((line) => {
    const names = line.split(' ')
    return names.map((name) => [name, names[0]!])
  }),
)

/** Reads `deploy/web` as `deployment/web`, `pod/web` as `web`; null for a kind without pods. */
export function podName(kind: string, name: string): string | null {
  const known = Object.hasOwn(workloads, kind.toLowerCase()) ? workloads[kind.toLowerCase()] : undefined
  if (known === undefined) return null
  return known === 'pod' ? name : `${known}/${name}`
}

/** Normalises the name of a pod in a word of a command line; leaves any other word as it is. */
export function nameOfWord(kind: string, text: string): string {
  const slash = text.indexOf('/')
  if (kind !== 'pod' || slash < 0) return text
  return podName(text.slice(0, slash), text.slice(slash + 1)) ?? text
}
